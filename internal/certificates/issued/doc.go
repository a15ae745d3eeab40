// SPDX-License-Identifier: Apache-2.0

// Package issued is the record of all issued certificates. It keeps, forever, the node of each certified public key,
// the bootstrap tokens that a node joined by and the fact that it joined; and it keeps the machines of a node's last
// certificate and of each valid client certificate. The record contains no secrets.
//
// # Where it is
//
// ConfigMaps muster-issued-certificates-000001 and so on, with the label certificates.muster.dev/register=true, each of
// at most 256 KiB. Each line of data.certificates is a certificate; each line of data.keys the keys of one owner on one
// machine whose certificates expired more than a day ago or were more than anybody needs: 96 bits of each key's
// fingerprint, of a token's public half with the name of the node, of a mark that somebody joined, and of each
// certificate that had not expired:
//
//	uid=5a1f… csr=csr-7x2kq signer=kubernetes.io/kubelet-serving node=a machine=i-1 requester=system:bootstrap:abcdef key=MSBr… serial=5f issuer=kubernetes from=2026-05-01T10:00:00Z to=2026-05-08T10:00:00Z
//	owner=a machine=i-1 last=2026-05-01T10:00:00Z keys=MSBrZXkAAAAAAAAA,MiBrZXkAAAAAAAAA
//
// New entries are written every two seconds at most, into the newest segment, on the condition that nobody else wrote
// it. After a conflict the segment is read again, and the entries that it still lacks are added. An hourly compaction
// turns expired certificates into keys, joins small neighbours, and bounds what one owner can fill: 64 whole
// certificates and 1,024 keys. A key takes 20 bytes of memory.
//
// # What happens if
//
// The program is killed between issuing and writing: at its next start it reads the requests, too, which hold their
// certificates.
//
// The machine of a certificate is not on record: see heal.
//
// Writing fails: it is retried forever, and lookups are answered meanwhile, as nothing is lost while the requests
// exist. After half an hour, or 20,000 certificates, new keys are Unknown until writing works again.
//
// Somebody deletes a segment: it is written again from memory.
//
// Somebody deletes a line: the entry is gone. That is how a key is set free.
//
// A segment is damaged, which is what any line means that cannot be read in exactly the way it is written here: it is
// set aside and never written or deleted, and its readable lines count. If the register was running when that happened,
// it knows what else was in it, writes that into another segment, and goes on. If not, nobody knows what was in it:
// keys and machines that are not on record are Unknown, so requests wait, until somebody repairs the segment, or
// deletes it to accept the loss. Kubelets ask for their next certificate when a tenth to a third of its life is left,
// so with certificates of a week there are more than sixteen hours before the first node is without one. That is why
// waiting is right, and why it is logged as an error.
package issued
