"""Does a distributed program compute what the sequential model computes?"""
