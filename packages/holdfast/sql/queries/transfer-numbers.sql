-- The first and the last number of those that are open. Whoever sees a number knows that all below it were given before.
SELECT min(attempt) AS oldest, max(attempt) AS newest FROM transfers
