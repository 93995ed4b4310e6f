import { objectOrEmpty } from '../../base/lists.ts';

/* Owns the annotation of a ClusterInstance for the one value of agent-config.yaml that the API has no member for. */

export const RENDEZVOUS_ANNOTATION = 'sealift/rendezvous-ip';

/** Undefined if the resource leaves the choice of the rendezvous host to the program. */
export function readRendezvousAnnotation(metadata: unknown): string | undefined {
  const value = objectOrEmpty(objectOrEmpty(metadata)['annotations'])[RENDEZVOUS_ANNOTATION];
  return typeof value === 'string' ? value : undefined;
}
