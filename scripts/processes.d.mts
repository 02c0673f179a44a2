/** Types for the tests, which are such a process themselves. */

export function describe(pid: number): { name: string; parent: number; startTicks: string } | undefined
