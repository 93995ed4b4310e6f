/** Said again on purpose: tests must not take it from the program. What the service adds to what it is given; to others it is to be given. An Ignition config. */
export const SENTINEL = JSON.stringify({
  ignition: { version: '3.2.0' },
  storage: {
    files: [
      {
        path: '/etc/assisted/interactive-ui',
        overwrite: true,
        user: { name: 'root' },
        contents: { source: 'data:,' },
        mode: 0o644,
      },
    ],
  },
});
