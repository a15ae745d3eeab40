// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
)

// Cluster is what a cluster shows of who decides about requests for certificates in it.
type Cluster struct {
	// Bindings lists the ClusterRoleBindings.
	Bindings func(context.Context) ([]rbacv1.ClusterRoleBinding, error)
	// Issued lists the certificates that Muster's certificate controller has recorded. It is called only when bindings
	// leave a doubt.
	Issued func(context.Context) ([]issued.Entry, error)
}

// Doubt is why the binding of a token may mean nothing in a cluster; the zero value is no doubt.
type Doubt struct {
	// Why is one sentence without a full stop.
	Why string
	// Binding is the ClusterRoleBinding that lets upstream's controller approve the token for any node, through one of
	// the token's groups; "" if bindings could not be read.
	Binding string
}

// Enforced returns a doubt if nothing shows that the binding of a token in these groups is enforced. Muster's
// certificate controller enforces it; upstream's knows no such groups, and approves for any node what a
// ClusterRoleBinding lets it.
func (c Cluster) Enforced(ctx context.Context, groups []string) Doubt {
	bindings, err := c.Bindings(ctx)
	if err != nil {
		return Doubt{Why: fmt.Sprintf("whether anything in this cluster enforces it cannot be seen: %v", err)}
	}
	opens, own := ApprovedForAnyNode(bindings, groups)
	if opens == "" || own {
		return Doubt{}
	}
	entries, err := c.Issued(ctx)
	if slices.ContainsFunc(entries, func(e issued.Entry) bool { return e.Signer == pki.SignerKubeletClient }) {
		return Doubt{} // entries that could be read count, whatever the error says of others
	}
	why := "it has recorded no node's certificate"
	if err != nil {
		why = err.Error()
	}
	return Doubt{
		Why:     fmt.Sprintf("nothing shows that muster's certificate controller decides here (%s), and ClusterRoleBinding %s has upstream's approve this token for any node", why, opens),
		Binding: opens,
	}
}
