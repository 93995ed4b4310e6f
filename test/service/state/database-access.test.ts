import { expect, test } from 'vitest';
import { readDatabaseAccess } from '../../../src/service/state/database-access.ts';

test.each([
  ['postgres://u:p@db.example/x', 'the connection to the database on db.example is not encrypted'],
  ['postgres://u:p@192.0.2.7/x?sslmode=disable', 'is not encrypted'],
  [
    'postgres://u:p@db.example/x?sslmode=no-verify',
    'the certificate of the database on db.example is not verified',
  ],
  ['postgres://u:p@db.example/x?sslmode=require&uselibpqcompat=true', 'is not verified'],
])('a database that others on the way can read is warned of: %s', (url, doubt) => {
  expect(readDatabaseAccess(url, {}).doubt).toContain(doubt);
});

test.each([
  'postgres://u:p@localhost/x',
  'postgres://u:p@127.0.0.1:5432/x',
  'postgres:///x?host=/var/run/postgresql',
  'postgres://u:p@db.example/x?sslmode=verify-full',
  'postgres://u:p@db.example/x?sslmode=require',
  'postgres://u:p@db.example/x?ssl=true',
])('a database that only both ends can read is not warned of: %s', (url) => {
  expect(readDatabaseAccess(url, {}).doubt).toBeUndefined();
});

test('TLS of a database is verified by its name or address, regardless of the environment', () => {
  const { ssl, url } = readDatabaseAccess('postgres://u:p@192.0.2.7/x?sslmode=require', {});
  expect(ssl).toMatchObject({ rejectUnauthorized: true });
  expect(url).toBe('postgres://u:p@192.0.2.7/x');
  const check = ssl === false ? undefined : ssl.checkServerIdentity;
  const certificate = (subjectaltname: string) => ({ subjectaltname, subject: {} }) as never;
  expect(check?.('localhost', certificate('IP Address:192.0.2.7'))).toBeUndefined();
  expect(check?.('localhost', certificate('DNS:localhost'))).toBeInstanceOf(Error);
});
