// SPDX-License-Identifier: Apache-2.0

// Package nodeauthorizer is an authorization webhook of API servers that refuses client certificates of nodes whose
// machine is gone.
//
// A certificate is good until it expires, and API servers read no revocation lists. Without this webhook a machine that
// was deleted, or whoever copied its key, makes its Node anew and reads what pods of that name are given. API servers
// from v1.32 on say which certificate a request was made with (extra authentication.kubernetes.io/credential-id), and
// the register knows which machine it was issued to.
//
// The webhook never allows anything: it denies, or has no opinion and leaves the request to the authorizers behind it.
// It decides about machines of sources that it is given alone, which know each machine that there is; hosts that people
// registered are not its business yet.
//
// # What happens if
//
// The program has just started: requests of nodes with a certificate wait until the register and the list of machines
// have been read, for four seconds at most. When ten seconds have passed since the start and they are not read, such
// requests are denied at once.
//
// The source of machines is away: the list that was read last counts, however old it is. Who takes a machine off the
// list is away as well.
//
// The program is away: the API server denies such requests, as its configuration says, and kubelets try again.
//
// A record cannot be read, or none says which machine got the certificate: no opinion, since one bad record would else
// shut every node with a certificate out. A certificate from before the controller was installed stays good until it
// expires.
package nodeauthorizer
