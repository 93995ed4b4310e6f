type UserInfo = { readonly username: string; readonly password: string };

/** The value of an `Authorization` header: RFC 7617 2, in UTF-8. */
export const formatBasic = ({ username, password }: UserInfo): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
