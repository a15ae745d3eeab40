// SPDX-License-Identifier: Apache-2.0

package vpccontroller

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
)

// A VPC that has an address of the host's load balancers is not made, until they are elsewhere; one that was made
// before goes on.
func TestVPCOverTheHostsBalancers(t *testing.T) {
	w := newWorld(t)
	w.vpc(one, "10.0.0.0/16", false)
	w.reconcile(one)
	w.host = []netip.Prefix{netip.MustParsePrefix("127.128.0.0/10"), netip.MustParsePrefix("10.0.255.240/28"), netip.MustParsePrefix("10.9.0.1/32")}
	w.reconcile(one)
	w.says(&v1alpha1.VPC{}, one, reasonReady, "")

	w.vpc(two, "10.0.0.0/20", false)
	w.reconcile(two)
	w.says(&v1alpha1.VPC{}, two, reasonReady, "")
	for id, cidr := range map[string]string{"vpc-0123456789abcdef2": "10.0.240.0/20", "vpc-0123456789abcdef3": "10.9.0.0/16"} {
		w.vpc(id, cidr, id != "vpc-0123456789abcdef2")
		w.subnet(strings.Replace(id, "vpc-", "subnet-", 1), id, cidr[:len(cidr)-2]+"24", "us-east-1a")
		w.did = nil
		if result := w.reconcile(id); result.RequeueAfter != judgeAgain || len(w.did) != 0 {
			t.Errorf("looks again after %v, did %v", result.RequeueAfter, w.did)
		}
		w.says(&v1alpha1.VPC{}, id, reasonHostRange, cidr+" overlaps 10.")
		w.says(&v1alpha1.Subnet{}, strings.Replace(id, "vpc-", "subnet-", 1), reasonNoVPC, "is not made")
	}
	w.delete(&v1alpha1.VPC{}, "vpc-0123456789abcdef3")
	w.reconcile("vpc-0123456789abcdef3")
	w.says(&v1alpha1.VPC{}, "vpc-0123456789abcdef3", "", "")

	w.host, w.hostFails = nil, errors.New("it cannot be read")
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "vpc-0123456789abcdef2"}}); !errors.Is(err, w.hostFails) {
		t.Errorf("got %v", err)
	}
	w.says(&v1alpha1.VPC{}, "vpc-0123456789abcdef2", reasonFailed, "it cannot be read")
	w.hostFails = nil
	w.reconcile("vpc-0123456789abcdef2")
	w.says(&v1alpha1.VPC{}, "vpc-0123456789abcdef2", reasonReady, "")
}
