/** Options of `serve` for clients that are many, and all have the address of this machine. */
export const ONE_ADDRESS_LIMITS = [
  ...['--limit-calls', '100000'],
  ...['--limit-address', '2048'],
  ...['--limit-tenant', '2048'],
  ...['--tenant-records', '1000000', '--tenant-bytes', '64GiB'],
];
