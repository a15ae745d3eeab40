// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The memory that the controller keeps for 5,000 requests, with the store of the test itself taken off.
func TestMemoryOfFiveThousandRequests(t *testing.T) {
	const n = 5000
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	for _, tc := range []struct {
		name   string
		finish bool
		most   float64 // MiB
	}{{"issued", true, 12}, {"pending", false, 40}} {
		t.Run(tc.name, func(t *testing.T) {
			w := prepareWorld(t)
			w.config.Logger = discard()
			pem := serving(t, "", 11, address(11)).Spec.Request
			for k := range n {
				csr := object(fmt.Sprint("csr-", k), "kubernetes.io/kubelet-serving", pem, "system:node:"+nodeName(k+100000), "system:nodes")
				csr.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x", Subresource: "approval", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{}}}`)}}
				if tc.finish {
					approved(csr)
					csr.Status.Certificate = pem
				}
				w.create(csr)
			}
			w.client.ClearActions()
			before := heap()
			w.run()
			w.until("all are known", func() bool { return len(w.informer.GetStore().List()) == n })
			w.until("all passes have ended", w.resting)
			w.client.ClearActions()
			after := heap()
			t.Logf("%d requests %s: %.1f MiB, %.1f KiB each", n, tc.name, after-before, (after-before)*1024/n)
			if after-before > tc.most {
				t.Errorf("%.1f MiB for %d requests", after-before, n)
			}
			runtime.KeepAlive(w)
		})
	}
}
