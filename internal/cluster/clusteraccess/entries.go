// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
)

// nodes makes the entry that lets the machines of a role in as nodes.
func (a Access) nodes(ctx context.Context, role *v1alpha1.IAMRole) error {
	err := a.nodesOnce(ctx, role)
	if errors.Is(err, errMeanwhile) { // it is found now
		err = a.nodesOnce(ctx, role)
	}
	return err
}

// errMeanwhile says that another part of the service made an object of that name a moment ago.
var errMeanwhile = errors.New("another part of the service was making the same entry at the same time")

func (a Access) nodesOnce(ctx context.Context, role *v1alpha1.IAMRole) error {
	name := entryName(role.Spec.Name)
	if a.mode == v1alpha1.AuthenticationConfigMap {
		return a.mapping(ctx, name, nodeMapping(role.Spec.ARN))
	}
	return a.enter(ctx, name, nodeEntry(role.Spec.ARN, role.Spec.RoleID))
}

// nodeEntry is the access entry of a role of nodes.
func nodeEntry(role, id string) accessv1alpha1.AccessEntrySpec {
	return accessv1alpha1.AccessEntrySpec{PrincipalARN: role, PrincipalID: id, Type: accessv1alpha1.TypeEC2Linux}
}

// nodeMapping is the IAMIdentityMapping of a role of nodes.
func nodeMapping(role string) iamv1alpha1.IAMIdentityMappingSpec {
	return iamv1alpha1.IAMIdentityMappingSpec{ARN: role, Username: nodeUsername, Groups: []string{"system:bootstrappers", "system:nodes"}}
}

// entryName returns the name of the object for a role.
func entryName(role string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(role))
	if name = strings.Trim(name, ".-"); len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "node-role"
	}
	return name
}

// enter makes an access entry, unless there is one for the principal. It does not change an entry that exists.
func (a Access) enter(ctx context.Context, name string, spec accessv1alpha1.AccessEntrySpec) error {
	var entries accessv1alpha1.AccessEntryList
	if err := a.cluster.List(ctx, &entries); err != nil {
		return fmt.Errorf("listing access entries: %w", err)
	}
	names := map[string]bool{}
	for _, entry := range entries.Items {
		if entry.Spec.PrincipalARN == spec.PrincipalARN {
			return nil
		}
		names[entry.Name] = true
	}
	entry := &accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: notTaken(name, names)}, Spec: spec}
	if err := a.cluster.Create(ctx, entry); apierrors.IsAlreadyExists(err) && !names[entry.Name] {
		return errMeanwhile
	} else if err != nil {
		return fmt.Errorf("making access entry %s: %w", entry.Name, err)
	}
	return nil
}

// mapping makes an IAMIdentityMapping, unless there is one for the ARN.
func (a Access) mapping(ctx context.Context, name string, spec iamv1alpha1.IAMIdentityMappingSpec) error {
	var mappings iamv1alpha1.IAMIdentityMappingList
	if err := a.cluster.List(ctx, &mappings); err != nil {
		return fmt.Errorf("listing IAMIdentityMappings: %w", err)
	}
	names := map[string]bool{}
	for _, mapping := range mappings.Items {
		if mapping.Spec.ARN == spec.ARN {
			return nil
		}
		names[mapping.Name] = true
	}
	mapping := &iamv1alpha1.IAMIdentityMapping{ObjectMeta: metav1.ObjectMeta{Name: notTaken(name, names)}, Spec: spec}
	if err := a.cluster.Create(ctx, mapping); apierrors.IsAlreadyExists(err) && !names[mapping.Name] {
		return errMeanwhile
	} else if err != nil {
		return fmt.Errorf("making IAMIdentityMapping %s: %w", mapping.Name, err)
	}
	return nil
}

// notTaken returns the name, with a number if it is taken.
func notTaken(name string, taken map[string]bool) string {
	for n, wanted := 2, name; ; n++ {
		if !taken[name] {
			return name
		}
		name = fmt.Sprintf("%s-%d", wanted, n)
	}
}
