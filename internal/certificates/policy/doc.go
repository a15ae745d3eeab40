// SPDX-License-Identifier: Apache-2.0

// Package policy decides which certificate signing requests are approved, denied or left waiting, of kubelets above
// all. It is pure: its input is a Request, Facts and the time; it does no I/O. rules.go is the list of rules, to be
// read from top to bottom; each rule has a file of its own, and a section in docs/rules.md with its purpose.
//
// Which rules apply depends on the profile of the signer: behind a kubelet's certificate there must be a machine;
// everything else is approved by people and only checked here (Profile.Manual).
//
// # Which verdict when
//
// The kubelet asks again about 112 times an hour after a denial, and every 15 minutes while nobody answers. So the four
// verdicts are chosen with care:
//
//   - Deny is for what no later event can make true and no honest kubelet asks for: malformed bytes, another node's name, a
//     reserved name, an address that the inventory knows to be another machine's, another machine's certificate, a machine that is
//     being deleted.
//   - Wait is for everything that may yet become true: a machine that the inventory does not show (yet), one without a name or
//     addresses, an address of no machine, an access review that says no (somebody may bind the role), any fact that is Unknown. It is the
//     cheap answer, too: the request stays, and is decided at the moment the fact changes.
//   - Ignore is for requests that are not ours to judge: other signers, requests already decided, requesters that no
//     rule here vouches for, such as a person or a bootstrap token that was not made for a machine, and requests that only people
//     can judge. A person may approve those; they are then signed if their contents pass.
//   - Approve needs every rule. An Unknown fact never approves.
package policy
