// SPDX-License-Identifier: Apache-2.0

// Package podwebhook is the pod identity webhook: the API server asks it about each new pod, and it answers with what
// package podpatch changes in it. It is what amazon-eks-pod-identity-webhook is, in any cluster.
//
// It trusts the API server, the annotations of service accounts, its ConfigMap, and the file of pod identity
// associations, which its operator names. Where its operator names a writer, too, it writes the file itself when that
// client tells it which service accounts have one, and keeps the last list. It refuses nobody a pod: it answers
// "allowed" always, and the failure policy of its configuration is Ignore.
//
// What happens if
//
//	a service account is newer than the watch   the API server is asked for it, 20 times a second at most, and the pod waits for the grace period
//	it stays unknown                            the pod goes without; metric pod_identity_webhook_missing_sa_count, and the log
//	the webhook was away, or too slow           pods go without; when it is back it looks for those, and says so in an Event on each (NoAWSIdentity)
//	                                            and in the metric muster_pod_identity_webhook_pods_without_identity
//	the ConfigMap or the file is damaged        what it said before holds, and the log says what is wrong
//	the writer is away                          the last list holds, also after a restart; before the first one the webhook is not ready
package podwebhook
