"""The three ways in which `tfviz.sparse_attention` computes, one file each."""
