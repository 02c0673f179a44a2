/** What the server measures beside the library's own `METRICS`. Labels: a route's pattern, never a path; a class of status. */
export const HTTP_METRICS = {
  http_request_duration_seconds: {
    type: 'histogram',
    labels: ['method', 'route', 'status'],
    help: 'Time from the arrival of a request to the end of its answer, by route pattern and class of status',
  },
  http_requests_in_flight: { type: 'gauge', labels: [], help: 'Requests that are being answered' },
  webhook_deliveries_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'What was to be told by webhook: delivered, retried (not taken, and tried again), failed (after all tries), dropped (too much was waiting, or the server stopped)',
  },
  webhooks_failing_seconds: {
    type: 'gauge',
    labels: [],
    help: 'For how long the webhook has taken nothing, of those that this process serves, that has taken nothing longest',
  },
  events_streams: { type: 'gauge', labels: [], help: 'Streams of events that are open' },
  events_sent_total: { type: 'counter', labels: ['by'], help: 'Events that were sent, by stream or by webhook' },
  events_lag_seconds: {
    type: 'histogram',
    labels: [],
    help: 'From when something happened to when those who listen were told, as far as the clocks of both agree',
  },
  events_streams_cut_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Streams that the server gave up: stalled (the reader took nothing for 30 s)',
  },
  events_read_failures_total: {
    type: 'counter',
    labels: [],
    help: 'Times that the feed of events could not be read; it is read again from where it was',
  },
} as const
