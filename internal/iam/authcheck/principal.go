// SPDX-License-Identifier: Apache-2.0

package authcheck

import (
	"cmp"
	"fmt"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
)

// Supposed describes a principal that need not exist.
type Supposed struct {
	ARN         string // of a role, a session or a user
	UserID      string // AROA… or AIDA…; may be empty
	SessionName string // of a session of the role; empty is the instance's id, or one made up
	// Instance is nil unless the session is supposed to be proven to be an instance's.
	Instance *identity.Instance
	// MachineCluster is the cluster that the instance is supposed to have been launched for; empty for none.
	MachineCluster string
}

// Principal returns the principal that STS would answer for an ARN; for a role, a session of that role.
func (s Supposed) Principal() (*identity.Principal, error) {
	who, err := arn.Parse(s.ARN)
	if err != nil {
		return nil, err
	}
	canonical, err := who.Canonical()
	if err != nil {
		return nil, err
	}
	p := &identity.Principal{CanonicalARN: canonical, Account: canonical.Account, UserID: s.UserID, Instance: s.Instance}
	if _, name, ok := canonical.Role(); ok {
		_, named, _ := who.AssumedRole()
		instance := ""
		if s.Instance != nil {
			instance = s.Instance.ID
			p.Machine = &identity.Machine{ID: s.Instance.ID, Cluster: s.MachineCluster}
		}
		p.SessionName = cmp.Or(named, s.SessionName, instance, "session")
		who = arn.ARN{Partition: canonical.Partition, Service: "sts", Account: canonical.Account, Resource: "assumed-role/" + name + "/" + p.SessionName}
		if _, _, ok := who.AssumedRole(); !ok {
			return nil, fmt.Errorf("invalid session name %q: must be 2 to 64 letters, digits or +=,.@-_", p.SessionName)
		}
	}
	p.ARN = who
	return p, nil
}
