-- The mark at a position, and the head. No mark: the feed does not reach back so far, or there never was such a position.
SELECT h.position AS head, (SELECT f.mark FROM feed f WHERE f.position = $1) AS mark FROM feed_head h
