// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// goingNamespace refuses Clusters a few times, as the API server does in a namespace that is being deleted.
type goingNamespace struct {
	client.Client
	left int
}

func (g *goingNamespace) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if _, is := object.(*v1alpha1.Cluster); !is || g.left == 0 {
		return g.Client.Create(ctx, object, options...)
	}
	g.left--
	going := apierrors.NewForbidden(schema.GroupResource{Group: "muster.dev", Resource: "clusters"}, object.GetName(), nil)
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Message: "namespace is being terminated", Field: "metadata.namespace"}}
	return going
}

// DescribeCluster says that a cluster is gone a moment before its namespace is. Its name is free from then on.
func TestANameThatIsSaidToBeFreeIsFree(t *testing.T) {
	going := &goingNamespace{left: 3}
	w := newWorld(t, func(c *Config) { going.Client, c.Management = c.Management, going })
	w.ask("GET", "/clusters/Blue_1", "", 404)
	w.ask("POST", "/clusters", makeOne, 200, `"status":"CREATING"`)
	if going.left != 0 {
		t.Errorf("the namespace was not waited for: %d refusals are left", going.left)
	}
}

func TestRangesOfServices(t *testing.T) {
	vpc := func(id, cidr string, isDefault bool) *v1alpha1.VPC {
		return &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.VPCSpec{CIDRBlock: cidr, IsDefault: isDefault}}
	}
	asks := func(cidr string) string {
		return strings.Replace(makeOne, `"tags"`, `"kubernetesNetworkConfig":{"serviceIpv4Cidr":"`+cidr+`"},"tags"`, 1)
	}
	nowhere := strings.Replace(makeOne, `"subnetIds":["subnet-1","subnet-2"]`, `"subnetIds":[]`, 1)
	for name, test := range map[string]struct {
		vpc, body string
		status    int
		says      string
	}{
		"inside the VPC":        {"10.0.0.0/16", asks("10.0.128.0/20"), 400, "serviceIpv4Cidr 10.0.128.0/20 overlaps 10.0.0.0/16"},
		"around the VPC":        {"10.0.0.0/16", asks("10.0.0.0/12"), 400, "serviceIpv4Cidr 10.0.0.0/12 overlaps 10.0.0.0/16"},
		"beside it":             {"10.0.0.0/16", asks("10.1.0.0/16"), 200, `"serviceIpv4Cidr":"10.1.0.0/16"`},
		"nobody's":              {"10.0.0.0/16", makeOne, 200, `"serviceIpv4Cidr":"10.100.0.0/16"`},
		"nobody's in that VPC":  {"10.100.0.0/16", makeOne, 200, `"serviceIpv4Cidr":"172.20.0.0/16"`},
		"nobody's in a default": {"10.0.0.0/16", nowhere, 200, `"serviceIpv4Cidr":"10.100.0.0/16"`},
		"the default VPC's":     {"10.0.0.0/16", strings.Replace(nowhere, `"tags"`, `"kubernetesNetworkConfig":{"serviceIpv4Cidr":"172.31.0.0/20"},"tags"`, 1), 400, "overlaps 172.31.0.0/16"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, vpc("vpc-1", test.vpc, false), vpc("vpc-9", "172.31.0.0/16", true))
			w.ask("POST", "/clusters", test.body, test.status, test.says)
		})
	}
}
