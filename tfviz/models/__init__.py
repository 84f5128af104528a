"""A GPT, a BERT and an encoder–decoder, made from the same blocks."""
