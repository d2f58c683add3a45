#!lua
-- Does nothing. Redis refuses it as it would refuse any script that may write: with a full memory or disk, on a replica, and
-- where its key has moved.
--
-- KEYS[1]  a key of the partition that is asked about
--
-- Reply: 1.
return 1
