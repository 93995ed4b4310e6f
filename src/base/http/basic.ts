import { isUtf8 } from 'node:buffer';

/** Curl, docker and podman send the bytes that they read: those that are not UTF-8 have an encoding. */
export type UserInfo = {
  readonly username: string;
  readonly password: string;
  /** The encoding of both texts; absent: UTF-8. Latin-1 has a character for every byte. */
  readonly encoding?: 'latin1';
};

/** The texts of a user name and a password, in which no byte is lost. */
export function decodeUserInfo(username: Buffer, password: Buffer): UserInfo {
  if (isUtf8(username) && isUtf8(password)) {
    return { username: username.toString(), password: password.toString() };
  }
  const encoding = 'latin1';
  return { username: username.toString(encoding), password: password.toString(encoding), encoding };
}

/** The value of an `Authorization` header: RFC 7617 2, in UTF-8 if there is no other encoding. */
export const formatBasic = ({ username, password, encoding }: UserInfo): string =>
  `Basic ${Buffer.from(`${username}:${password}`, encoding ?? 'utf8').toString('base64')}`;
