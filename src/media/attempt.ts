import { describeDamage } from './open-medium.ts';

export type Attempt<Value> = { readonly value?: Value; readonly problem?: string };

/** What is damaged is what somebody looks at an image for: it is reported, not thrown. */
export async function attempt<Value>(read: () => Promise<Value>): Promise<Attempt<Value>> {
  try {
    return { value: await read() };
  } catch (error) {
    const problem = describeDamage(error);
    if (problem === undefined) throw error;
    return { problem };
  }
}
