"""Attacks on the promises, one file a kind: a case is a number, its verdict one of five words.

held       a true answer            refused    an error of ours
unsound    an answer that is false  foreign    an exception that is not ours     hung    no answer in time
"""
