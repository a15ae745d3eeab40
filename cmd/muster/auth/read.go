// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamauthenticatorv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/iam/authcheck"
)

// readCluster reads what there is in a cluster. A kind that it does not serve has no entries.
func (c *authCommand) readCluster(ctx context.Context) (*authcheck.Entries, error) {
	p, err := c.cluster(c.Options)
	if err != nil {
		return nil, err
	}
	there, err := ReadEntries(ctx, p)
	if err != nil {
		return nil, err
	}
	found := authcheck.OfCluster(there)
	var accounts corev1.ServiceAccountList
	switch err := p.ReadAll(ctx, &accounts); {
	case err == nil:
		found.AddServiceAccounts(accounts.Items)
	case apierrors.IsForbidden(err):
		found.Notes = append(found.Notes, "The service accounts cannot be read, and so the roles of pods are not checked.")
	case !absent(err):
		return nil, err
	}
	return found, nil
}

// ReadEntries reads the entries of a cluster that let IAM principals in. A kind that the cluster does not serve has none.
func ReadEntries(ctx context.Context, p *kinds.Client) (authcheck.Cluster, error) {
	var there authcheck.Cluster
	var entries accessv1alpha1.AccessEntryList
	if err := p.ReadAll(ctx, &entries); err == nil {
		there.AccessEntries = &entries
	} else if !absent(err) {
		return there, err
	}
	var mappings iamauthenticatorv1alpha1.IAMIdentityMappingList
	if err := p.ReadAll(ctx, &mappings); err == nil {
		there.Mappings = &mappings
	} else if !absent(err) {
		return there, err
	}
	var awsAuth corev1.ConfigMap
	err := p.Within(ctx, func(ctx context.Context) error {
		return p.Get(ctx, client.ObjectKey{Namespace: authcheck.AWSAuthNamespace, Name: authcheck.AWSAuthName}, &awsAuth)
	})
	if err == nil {
		there.AWSAuth = &awsAuth
	} else if !absent(err) {
		return there, err
	}
	return there, nil
}

// absent reports whether an error says that there is no such object, or that the cluster does not serve its kind.
func absent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// maxAuthFile is how much is read of one file.
const maxAuthFile = 8 << 20

func readFiles(in io.Reader, manifests, files []string) (*authcheck.Entries, error) {
	entries := &authcheck.Entries{}
	for _, name := range manifests {
		data, err := terminal.ReadInput(in, name, "entries", maxAuthFile)
		if err != nil {
			return nil, err
		}
		if err := entries.AddManifest(name, data); err != nil {
			return nil, err
		}
	}
	for _, name := range files {
		data, err := terminal.ReadInput(in, name, "entries", maxAuthFile)
		if err != nil {
			return nil, err
		}
		entries.AddMounted(data)
	}
	return entries, nil
}
