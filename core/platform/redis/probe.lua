#!lua
-- Does nothing. Redis refuses it as it would refuse any script that may write: with full memory or disk, on a replica, and
-- if its key has moved.
--
-- KEYS[1]  a key of the partition to check
--
-- Reply: 1.
return 1
