// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/bootstraptoken"
)

// unenforced returns why the binding of a token may mean nothing in the cluster, or "" if nothing suggests so.
func (c *tokenCommand) unenforced(ctx context.Context, p *kinds.Client, b token.Bootstrap) string {
	doubt := bootstraptoken.Cluster{
		Bindings: func(ctx context.Context) (bindings []rbacv1.ClusterRoleBinding, err error) {
			err = p.Within(ctx, func(ctx context.Context) (err error) { bindings, err = c.bindings(ctx, c.Options); return err })
			return bindings, err
		},
		Issued: func(ctx context.Context) (entries []issued.Entry, err error) {
			err = p.Within(ctx, func(ctx context.Context) (err error) { entries, err = c.issued(ctx, c.Options); return err })
			return entries, err
		},
	}.Enforced(ctx, b.Groups)
	if doubt.Binding != "" {
		return doubt.Why + "; --groups= leaves out the group that it is about"
	}
	return doubt.Why
}
