// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/certificates/token"
)

// Hosts returns the hosts that are registered with a cluster. It is empty if the cluster has no list of hosts.
func Hosts(ctx context.Context, c client.Reader) ([]policy.Machine, error) {
	var list corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: policyconfig.HostsNamespace, Name: policyconfig.HostsConfigMap}, &list)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	hosts, err := facts.ReadList([]byte(list.Data[listKey]))
	if err != nil {
		return nil, fmt.Errorf("the list of hosts (ConfigMap %s/%s, key %s): %w", list.Namespace, list.Name, listKey, err)
	}
	return hosts, nil
}

// Fitting are the hosts that a token with these scopes is good for. It is an error if one that the scopes name, by its
// ID or its node's name, is not among them: then the scopes contradict one another.
func Fitting(hosts []policy.Machine, scopes []token.Scope) (fitting []policy.Machine, err error) {
	for _, m := range hosts {
		named, why := false, ""
		for _, s := range scopes {
			what, is := "node's name", m.NodeName
			switch s.Kind {
			case token.ScopeMachine:
				what, is = "ID", m.ID
			case token.ScopeGroup:
				what, is = "group", m.Group
			case token.ScopeName, token.ScopeRejoin, token.ScopePattern:
			}
			fits := is == s.Value || s.Kind == token.ScopePattern && token.MatchName(s.Value, is)
			named = named || fits && (s.Kind == token.ScopeMachine || s.Kind == token.ScopeName)
			if !fits && why == "" {
				why = fmt.Sprintf("its %s %q does not fit the %s %q", what, is, s.Kind, s.Value)
			}
		}
		switch {
		case why == "":
			fitting = append(fitting, m)
		case named:
			return nil, fmt.Errorf("nobody could use the token: it is bound to the registered host %s, and %s", m.ID, why)
		}
	}
	return fitting, nil
}

// IsAt reports whether a host that is to be registered has the address of the API server, as far as cluster-info has
// one and not a name.
func (d Door) IsAt(m policy.Machine) bool {
	server, err := netip.ParseAddrPort(d.Address)
	return err == nil && slices.ContainsFunc(m.Addresses, func(a netip.Addr) bool { return a.Unmap() == server.Addr().Unmap() })
}
