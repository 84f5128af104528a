"""A lesson's one source and what is made of it: page, notebook, assignment, proof.

The book's Sphinx extensions and `tfviz_course` import it; it imports neither.
"""
