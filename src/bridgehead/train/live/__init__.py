"""Encoders that learn with their heads: tokenised items in chunks, stages of unfreezing, gradients of any batch.

`config` can be read without torch; `fit` is what users call. This folder is not about the loop (`train.loop`).
"""
