// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"path/filepath"
	"strings"
	"testing"
)

// tarred is a pod with what `kubectl cp` needs in it: the host's tar and its libraries.
const tarred = `apiVersion: v1
kind: Pod
metadata: {name: tarred}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: workload
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    args: [serve]
    env: [{name: PATH, value: /usr/bin}]
    volumeMounts:
    - {name: usr, mountPath: /usr, readOnly: true}
    - {name: lib, mountPath: /lib, readOnly: true}
    - {name: lib64, mountPath: /lib64, readOnly: true}
    - {name: work, mountPath: /work}
  volumes:
  - {name: usr, hostPath: {path: /usr}}
  - {name: lib, hostPath: {path: /lib}}
  - {name: lib64, hostPath: {path: /lib64}}
  - {name: work, emptyDir: {}}
`

// kubectlCopied has a pod run the kubectl that was built, as tests of upstream's suite do.
func kubectlCopied(t *testing.T, i *installation) {
	i.apply(tarred)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/tarred", "--timeout=60s")
	i.mustKubectl("cp", filepath.Join(i.bin, "kubectl"), "tarred:/work/kubectl")
	want := i.mustKubectl("version", "--client")
	if got, err := i.kubectl("exec", "tarred", "--", "/work/kubectl", "version", "--client"); err != nil || got != want || !strings.Contains(got, "Client Version: v1.") {
		t.Errorf("in a pod kubectl says %q, want %q: %v", got, want, err)
	}
	i.mustKubectl("delete", "pod", "tarred")
}
