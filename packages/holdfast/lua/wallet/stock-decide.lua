-- The rules of stock; checks stand in the order of precedence. The twin of src/machine/stock-decide.ts.

-- Different items in one checkout. They all stand in each of its entries.
local LINES_MAX = 100
local NO_CHECKOUT = { lines = {} }

-- Why nothing of it can be had, and of all: what there is, and what lies in checkouts and may come back.
local function sold_out(w, left, item)
  local left_words, stock, reserved = digits(math.max(0, left)), digits(math.max(0, w.available)), digits(w.reserved)
  if item then
    return reject('sold_out', 'item', item, 'left', left_words, 'stock', stock, 'reserved', reserved)
  end
  return reject('sold_out', 'left', left_words, 'stock', stock, 'reserved', reserved)
end

-- Into the buyer's running checkout, or into a new one. All of it or nothing.
local function check_out(w, c, now)
  local order = read_order(c)
  if now < order.from or now >= order.till or w.status == 'frozen' then
    return reject('sale_not_active', 'startsAt', digits(order.from), 'endsAt', digits(order.till))
  end
  local buyer = read_buyer(w, order.buyer)
  local running_id = buyer.running
  local running = running_id ~= '' and read_hold(w, running_id) or nil
  local checkout = running_id ~= '' and read_checkout(w, running_id) or NO_CHECKOUT
  local there = {}
  for i = 1, #checkout.lines do
    there[checkout.lines[i].item] = true
  end
  for i = 1, #order.lines do
    local item = order.lines[i].item
    if there[item] then
      return reject('duplicate_item', 'item', item)
    end
    there[item] = true
  end
  if #checkout.lines + #order.lines > LINES_MAX then
    return reject('too_large', 'max', digits(LINES_MAX))
  end
  local quantity = total(order.lines)
  local reserves = order.mode == 'reserve'
  -- What is only noted is not taken, and counts all the same: a checkout that could never be bought helps nobody.
  local left = order.per_buyer - buyer.taken - (reserves and 0 or total(checkout.lines))
  if quantity > left then
    return reject('user_limit', 'left', digits(math.max(0, left)))
  end
  for i = 1, #order.lines do
    local line = order.lines[i]
    if left_of(w, line) < line.quantity then
      return sold_out(w, left_of(w, line), line.item)
    end
  end
  if quantity > w.available then
    return sold_out(w, w.available)
  end
  local amount = reserves and quantity or 0
  local expires = math.min(order.till, now + order.ttl)
  local hold = running or { amount = 0, captured = 0, left = 0, expires = 0, refunded = 0 }
  hold.amount = hold.amount + amount
  hold.left = hold.left + amount
  hold.expires = math.max(hold.expires, expires)
  return move(w, {
    kind = running and 'extend' or 'hold', amount = amount, available = 0 - amount, reserved = amount, hold = hold,
    hold_id = running and running_id or c.hold, metadata = lines_text(checkout.lines, order.lines),
  })
end

-- Is it for these lines that the money is held, each of them and no other? What came into a checkout since is not paid for; nor is what the
-- price was asked of and what Redis forgot, with something else in its place.
local function pays_for(order, lines)
  local sum = 0
  for i = 1, #lines do
    sum = sum + (order.prices[lines[i].item] or 0 / 0) * lines[i].quantity
  end
  return order.priced == #lines and sum == order.held
end

-- What was reserved is sold. What was only noted is taken now: all of it, or what is left of it.
local function purchase(w, c, hold, checkout)
  local order = read_order(c)
  if order.held and not pays_for(order, checkout.lines) then
    return reject('hold_exceeded')
  end
  if checkout.mode == 'reserve' then
    local left = hold.left
    hold.captured = hold.amount
    hold.left = 0
    return move(w, {
      kind = 'settle', amount = hold.amount, available = 0, reserved = 0 - left, hold = hold, metadata = lines_text(checkout.lines),
    })
  end
  local room, available = order.per_buyer - read_buyer(w, checkout.buyer).taken, w.available
  local sold = {}
  for i = 1, #checkout.lines do
    local line = checkout.lines[i]
    local _, refusal
    if line.quantity > room then
      _, refusal = reject('user_limit', 'left', digits(math.max(0, room)))
    elseif line.quantity > left_of(w, line) then
      _, refusal = sold_out(w, left_of(w, line), line.item)
    elseif line.quantity > available then
      _, refusal = sold_out(w, available)
    else
      sold[#sold + 1] = line
      room = room - line.quantity
      available = available - line.quantity
    end
    if refusal and (order.all or (i == #checkout.lines and #sold == 0)) then
      return nil, refusal
    end
  end
  local amount = total(sold)
  hold.captured = amount
  hold.left = 0
  return spend(w, {
    kind = 'settle', amount = amount, available = 0 - amount, reserved = 0, hold = hold, sold = sold, metadata = lines_text(sold),
  })
end

-- From one part of a sale to another: all of it or nothing.
local function pass_on(w, c)
  local order = read_order(c)
  local amount = order.total
  if c.kind == 'take' then
    return move(w, { kind = 'credit', amount = amount, available = amount, reserved = 0 })
  end
  for i = 1, #order.lines do
    local line = order.lines[i]
    if left_of(w, line) < line.quantity then
      return sold_out(w, left_of(w, line), line.item)
    end
  end
  if amount > w.available then
    return sold_out(w, w.available)
  end
  return move(w, { kind = 'debit', amount = amount, available = 0 - amount, reserved = 0 })
end

local STOCK_KINDS = { checkout = true, purchase = true, cancel = true, give = true, take = true }

local function judge_stock(w, c, now)
  if not w.stock then
    error('a wallet has no stock for ' .. c.kind)
  end
  if c.kind == 'checkout' then
    return check_out(w, c, now)
  elseif c.kind == 'give' or c.kind == 'take' then
    return pass_on(w, c)
  end
  local hold = read_hold(w, c.hold)
  local checkout = hold and read_checkout(w, c.hold)
  if not checkout then
    return reject('hold_unknown')
  end
  if c.kind == 'cancel' then
    return move(w, give_back('release', hold))
  end
  return purchase(w, c, hold, checkout)
end
