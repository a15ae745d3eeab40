// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/test/promise"
)

// volumes has a claim grow while a pod uses its volume.
func (w *promises) volumes() {
	const claim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: grows}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 16Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: uses}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: workload, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve], volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: grows}}]
`
	w.apply(claim)
	w.mustKubectl("wait", "--for=condition=Ready", "pod/uses", "--timeout=120s")
	claims := w.client.CoreV1().PersistentVolumeClaims("default")
	for n := range promisedTimes {
		size := fmt.Sprintf("%dMi", 17+n)
		if _, err := claims.Patch(w.t.Context(), "grows", types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`), metav1.PatchOptions{}); err != nil {
			w.t.Fatal(err)
		}
		w.within(promise.VolumeGrown, "a claim asks for more", func() error {
			now, err := claims.Get(w.t.Context(), "grows", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return is(now.Status.Capacity.Storage().String(), size)
		})
	}
}
