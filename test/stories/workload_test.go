// SPDX-License-Identifier: Apache-2.0

package stories

// workload is a pod on every node that answers with its name, and a Service in front of them all.
const workload = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: hello}
spec:
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: hello
        image: muster.dev/workload:v1
        imagePullPolicy: IfNotPresent
        args: [serve]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: hello}
spec:
  selector: {app: hello}
  ports: [{port: 80, targetPort: 8080}]
`
