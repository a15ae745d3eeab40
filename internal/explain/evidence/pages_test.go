// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
)

// paged is an API server with many Nodes, which gives as many at once as it is asked for.
type paged struct {
	client.Reader
	nodes, asked int
	forgets      bool // it gives one page, and then does not know where it was
}

func (p *paged) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	nodes, ok := list.(*corev1.NodeList)
	if !ok {
		return p.Reader.List(ctx, list, opts...)
	}
	p.asked++
	var o client.ListOptions
	o.ApplyOptions(opts)
	from := 0
	if o.Continue != "" {
		from, _ = strconv.Atoi(o.Continue)
		if p.forgets {
			return apierrors.NewResourceExpired("the provided continue parameter is too old")
		}
	}
	to := p.nodes
	if o.Limit > 0 {
		to = min(p.nodes, from+int(o.Limit))
	}
	nodes.Items, nodes.Continue = nil, ""
	for n := from; n < to; n++ {
		nodes.Items = append(nodes.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", n)}})
	}
	if to < p.nodes {
		nodes.Continue = strconv.Itoa(to)
	}
	return nil
}

// Lists are read page by page, each object once.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		nodes, asked int
		forgets      bool
	}{
		"none": {0, 1, false}, "one page": {500, 1, false}, "three pages": {1001, 3, false}, "a server that forgets": {1001, 3, true},
	} {
		api := &paged{Reader: cluster(t, ""), nodes: test.nodes, forgets: test.forgets}
		s := &evidence.Snapshot{At: noon, Of: map[string]evidence.Cluster{}}
		s.ReadClusters(t.Context(), map[string]client.Reader{"home": api})
		seen := map[string]bool{}
		for _, n := range s.Of["home"].Nodes {
			seen[n.Name] = true
		}
		if len(seen) != test.nodes || len(s.Of["home"].Nodes) != test.nodes || api.asked != test.asked || slices.ContainsFunc(s.Of["home"].Unseen, func(u diagnosis.Unseen) bool { return strings.HasPrefix(u.What, "the Nodes") }) {
			t.Errorf("%s: %d of %d Nodes, asked %d times, %v", name, len(seen), test.nodes, api.asked, s.Of["home"].Unseen)
		}
	}
}
