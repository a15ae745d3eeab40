// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

const (
	// serviceEKS is the service that assumes the roles of control planes, as policies name it.
	serviceEKS = "eks.amazonaws.com"
	// karpenterPolicy is the name of the inline policy of a role that [MakeKarpenterRole] makes, and of its sessions.
	karpenterPolicy = "karpenter"
	// karpenterSession is how long credentials of a control plane's Karpenter last.
	karpenterSession = time.Hour
)

// karpenterTrust lets EKS have the role.
var karpenterTrust = strings.ReplaceAll(nodeTrust, serviceEC2, serviceEKS)

// karpenterRoleTag is on the role that was made for the Karpenter of a cluster's control plane.
func karpenterRoleTag(namespace string) iam.Tag {
	return iam.Tag{Key: "muster.dev/karpenter-role-of", Value: namespace}
}

// MakeKarpenterRole makes the role that Karpenter in the control plane of a cluster has, with a policy. The policy is
// corrected if it is another one; other policies of the role stay. It returns the id of the role. A role of that
// name that was made for something else is [ErrForeignRole].
func MakeKarpenterRole(ctx context.Context, store Store, account, namespace, policy string, now time.Time) (roleID string, err error) {
	state, err := store.State()
	if err != nil {
		return "", err
	}
	if !state.HasAccount(account) {
		return "", ErrNotReady
	}
	name := v1alpha1.ClusterKarpenterRole(namespace)
	role, ok := state.Role(account, name)
	switch {
	case ok && slices.Contains(role.Tags, karpenterRoleTag(namespace)) && role.Trust == karpenterTrust:
		if role.Inline[karpenterPolicy] == policy {
			return role.ID, nil
		}
		role.Inline = maps.Clone(role.Inline)
		if role.Inline == nil {
			role.Inline = map[string]string{}
		}
		role.Inline[karpenterPolicy] = policy
		return role.ID, store.Update(ctx, state, role)
	case state.taken(nameOf(kindRole, account, name)):
		return "", ErrForeignRole
	}
	role = iam.Role{
		Account: account, Path: "/", Name: name, Description: "Karpenter in the control plane of cluster " + namespace + ".", Created: moment(now),
		Trust: karpenterTrust, MaxSession: iam.DefaultRoleSession, Grants: iam.Grants{Inline: map[string]string{karpenterPolicy: policy}}, Tags: []iam.Tag{karpenterRoleTag(namespace)},
	}
	if role.ID, err = iam.NewID(iam.RolePrefix, rand.Reader); err != nil {
		return "", err
	}
	return role.ID, store.Create(ctx, role)
}

// RemoveKarpenterRole removes the role of a cluster whose control plane has no Karpenter any more, which ends the
// sessions of that. A role that was made for something else stays.
func RemoveKarpenterRole(ctx context.Context, store Store, account, namespace string) error {
	state, err := store.State()
	if err != nil {
		return err
	}
	role, ok := state.Role(account, v1alpha1.ClusterKarpenterRole(namespace))
	if !ok || !slices.Contains(role.Tags, karpenterRoleTag(namespace)) {
		return nil
	}
	if err := store.Delete(ctx, state, role); err != nil {
		return fmt.Errorf("removing role %s: %w", role.Name, err)
	}
	return nil
}

// Credentials are temporary credentials of a role, for the account's AWS APIs.
type Credentials struct {
	AccessKeyID, SessionToken string
	Secret                    iam.Secret
	Issued, Expires           time.Time
}

// AssumeForKarpenter makes credentials of the role that [MakeKarpenterRole] made for a cluster. They end with the role.
func AssumeForKarpenter(s *Service, namespace string) (Credentials, error) {
	now := s.config.Now()
	state, err := s.config.Store.State()
	if err != nil {
		return Credentials{}, err
	}
	role, ok := state.Role(s.config.Account, v1alpha1.ClusterKarpenterRole(namespace))
	if !ok {
		return Credentials{}, ErrNotReady // it was made a moment ago
	}
	session := Session{PrincipalID: role.ID, Name: karpenterPolicy, RootCluster: namespace, RootRole: role.ID}
	if err := trustsControlPlane(s, role, namespace, now); err != nil {
		return Credentials{}, err
	}
	session, token, err := s.issue(session, karpenterSession, now)
	if err != nil {
		return Credentials{}, err
	}
	s.config.Log.Info("issued credentials of a control plane", "cluster", namespace, "role", role.Name, "access_key_id", session.AccessKeyID, "until", session.Expires)
	return Credentials{AccessKeyID: session.AccessKeyID, Secret: session.Secret, SessionToken: token, Issued: session.Issued, Expires: session.Expires}, nil
}

// trustsControlPlane reports whether a control plane may have a role: the one that was made for its Karpenter, whose
// trust policy lets EKS in.
func trustsControlPlane(s *Service, role iam.Role, namespace string, now time.Time) error {
	if !slices.Contains(role.Tags, karpenterRoleTag(namespace)) {
		return fmt.Errorf("the role %s: %w", role.Name, ErrForeignRole)
	}
	if err := s.trusts(role, iampolicy.Caller{Service: serviceEKS}, actionAssume, nil, now); err != nil {
		return fmt.Errorf("the trust policy of the role %s does not let %s assume it: %w", role.Name, serviceEKS, err)
	}
	return nil
}

// rootedInCluster checks a session whose chain began with the Karpenter of a control plane: it ends with the role.
func rootedInCluster(s *Service, state *State, session Session, now time.Time) error {
	role, ok := state.RoleByID(session.RootRole)
	if !ok {
		return invalidToken("the role %s of the control plane of %s does not exist any more", session.RootRole, session.RootCluster)
	}
	if err := trustsControlPlane(s, role, session.RootCluster, now); err != nil {
		return invalidToken("%v", err)
	}
	return nil
}
