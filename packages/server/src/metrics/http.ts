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
    help: 'What was to be told by webhook: delivered, failed (after all tries), dropped (too much was waiting, or the server stopped)',
  },
} as const
