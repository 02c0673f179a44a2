-- Sales: what each was opened with, which never changes. What happens in them stands in the journals of their buckets, which are wallets
-- with stock.
CREATE TABLE sales (
  tenant text NOT NULL,
  id text COLLATE "C" NOT NULL,
  -- As jsonb, so that the same terms are equal however they were written down.
  terms jsonb NOT NULL,
  opened_at bigint NOT NULL,
  -- All its buckets have their stock. Until then nothing can be bought.
  ready boolean NOT NULL DEFAULT false,
  PRIMARY KEY (tenant, id)
);

-- `item` is its place in the list that the sale was opened with, from 1: what stands for it in checkouts.
CREATE TABLE sale_items (
  tenant text NOT NULL,
  sale text COLLATE "C" NOT NULL,
  item integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  quantity bigint NOT NULL,
  PRIMARY KEY (tenant, sale, item),
  UNIQUE (tenant, sale, id)
);

-- The last bit of a ref tells buckets of sales from wallets.
CREATE FUNCTION is_sale(ref uuid) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN get_byte(uuid_send(ref), 15) % 2 = 1;
