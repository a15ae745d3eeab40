// SPDX-License-Identifier: Apache-2.0

package accessentries

import (
	"context"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

// annotationTags has the tags of an access entry, as JSON: its kind is that of clusters that have no AWS API, too.
const annotationTags = "muster.dev/tags"

// Tags reads the tags of an entry. Tags that cannot be read are left out.
func Tags(e *accessv1alpha1.AccessEntry) map[string]string {
	tags := map[string]string{}
	_ = json.Unmarshal([]byte(e.Annotations[annotationTags]), &tags)
	return tags
}

// SetTags puts tags on an entry, in place of those that it has.
func SetTags(e *accessv1alpha1.AccessEntry, tags map[string]string) error {
	if len(tags) == 0 {
		delete(e.Annotations, annotationTags)
		return nil
	}
	text, err := json.Marshal(tags)
	if err != nil {
		return fmt.Errorf("encoding tags: %w", err)
	}
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[annotationTags] = string(text)
	return nil
}

// ByResource finds the access entry of the resource of an ARN, and the client that writes it. The entry is nil if there
// is no such entry.
func (a *API) ByResource(ctx context.Context, cluster, resource string) (client.Client, *accessv1alpha1.AccessEntry, error) {
	in, err := a.entriesOf(ctx, cluster)
	if known, ok := err.(*awsfault.Error); ok && known.Code == eksfault.InvalidRequest { //nolint:errorlint // entriesOf returns it as it is
		return nil, nil, nil // a cluster of a mode without entries, or one that is not served yet, has none
	}
	if err != nil {
		return nil, nil, err
	}
	all, err := in.all(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range all {
		if entryResource(cluster, all[i].Spec.PrincipalARN, string(all[i].UID)) == resource {
			return in.Client, &all[i], nil
		}
	}
	return nil, nil, nil
}
