"""Where two implementations part, what differs there and how much it is worth. Read ``divergence``, then ``pair``."""
