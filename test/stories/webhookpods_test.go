// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"strings"
	"time"
)

// The pods of the webhook, and what it counts of others.
const (
	podWebhookNamespace = "muster-pod-identity"
	podWebhookName      = "muster-pod-identity-webhook"
	podWebhookPods      = "kubectl -n " + podWebhookNamespace + " get pods --field-selector=status.phase=Running -l app.kubernetes.io/name=" + podWebhookName
	podWebhookCounts    = `for ip in $(` + podWebhookPods + ` -o jsonpath='{.items[*].status.podIP}'); do curl -s http://$ip:9440/metrics | grep ^muster_pod_identity_webhook_pods_without | cut -d' ' -f2; done | sort -u`
)

// identified makes a pod of the service account app and reports whether the webhook gave it a role.
func (k *kubeadmCluster) identified(name string) bool {
	k.t.Helper()
	k.run(`kubectl run ` + name + ` --image=muster.dev/muster:v0.2.0 --restart=Never --overrides='{"spec":{"serviceAccountName":"app"}}'`)
	return strings.Contains(k.run(`kubectl get pod `+name+` -o jsonpath='{.spec.containers[0].env}'`), "AWS_ROLE_ARN")
}

// podWebhookAnswers waits until the API server reaches a replica: kube-proxy hears of those that are ready a moment
// later than kubectl.
func (k *kubeadmCluster) podWebhookAnswers() {
	k.t.Helper()
	k.says("AWS_ROLE_ARN", `kubectl run dry --dry-run=server --image=muster.dev/muster:v0.2.0 --restart=Never --overrides='{"spec":{"serviceAccountName":"app"}}' -o jsonpath='{.spec.containers[0].env[0].name}'`)
}

func (k *kubeadmCluster) installPodWebhook() {
	k.steps().follow(page{name: "install-pod-identity-webhook.md", least: 17, unsteady: installedUnsteady, there: func(line, _ string) (string, error) {
		if strings.HasPrefix(line, "kubectl run app") {
			k.podWebhookAnswers()
		}
		return k.line(line)
	}})
	k.podWebhookAnswers()
	if !k.identified("by-helm") {
		k.t.Error("installed by Helm and asked with a certificate, it gives no role")
	}
	if logs := k.run(`cat /var/log/pods/` + podWebhookNamespace + `_*/*/*.log`); strings.Contains(logs, "forbidden") {
		k.t.Errorf("it misses rights:\n%s", logs)
	}
}

// strangersAskPodWebhook asks with no certificate, with the administrator's, and with an API server's.
func (k *kubeadmCluster) strangersAskPodWebhook() {
	ask := `curl -sk --max-time 10 -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' -d '{}' https://$(kubectl -n ` + podWebhookNamespace + ` get service ` + podWebhookName + ` -o jsonpath='{.spec.clusterIP}')/mutate`
	for who, c := range map[string]struct{ options, want string }{
		"nobody":         {"", "000"},
		"a kubelet":      {" --cert /var/lib/kubelet/pki/kubelet-client-current.pem", "000"},
		"the API server": {" --cert /etc/kubernetes/pki/front-proxy-client.crt --key /etc/kubernetes/pki/front-proxy-client.key", "400"},
	} {
		if got := k.run(ask + c.options + " || true"); got != c.want {
			k.t.Errorf("%s: %s, not %s", who, got, c.want)
		}
	}
}

func (k *kubeadmCluster) podWebhookIsConfined() {
	may := func(what string) bool {
		_, err := k.try("kubectl auth can-i --quiet " + what + " --as system:serviceaccount:" + podWebhookNamespace + ":" + podWebhookName)
		return err == nil
	}
	for _, what := range []string{"watch serviceaccounts -A", "list pods -A", "create events -A", "update secrets/" + podWebhookName + "-authority -n " + podWebhookNamespace, "patch mutatingwebhookconfigurations/pod-identity-webhook"} {
		if !may(what) {
			k.t.Errorf("it may not %s", what)
		}
	}
	for _, what := range []string{
		"create secrets -n " + podWebhookNamespace, "get secrets -n " + podWebhookNamespace, "get secrets -n kube-system", "patch mutatingwebhookconfigurations/other", "create mutatingwebhookconfigurations",
		"create pods -n " + podWebhookNamespace, "create serviceaccounts/token -A", "update serviceaccounts -A",
	} {
		if may(what) {
			k.t.Errorf("it may %s", what)
		}
	}
}

// podWebhookAway takes the webhook away while a pod is made. The replicas of it that come later tell of the pod once.
func (k *kubeadmCluster) podWebhookAway() {
	scale := "kubectl -n " + podWebhookNamespace + " scale deployment " + podWebhookName + " --replicas="
	k.run(scale + "0 && kubectl -n " + podWebhookNamespace + " wait --for=delete pod -l app.kubernetes.io/name=" + podWebhookName + " --timeout=60s")
	if k.identified("without") {
		k.t.Fatal("it is not away")
	}
	made := time.Now()
	k.run(scale + "2 && kubectl -n " + podWebhookNamespace + " rollout status deployment " + podWebhookName + " --timeout=80s")
	k.says("1 muster-pod-identity", `kubectl get events --field-selector involvedObject.name=without,reason=NoAWSIdentity -o jsonpath='{range .items[*]}{.source.component}{end}' | sed 's/^pod-identity-webhook$/1 muster-pod-identity/'`)
	k.says("1", podWebhookCounts)
	k.t.Logf("an Event and the metric told of the pod %s after it was made, the start of the webhook's pods included", time.Since(made).Round(time.Millisecond))
	k.run("kubectl delete pod without --now")
}

// podWebhookAuthorityGoes empties the Secret, as the page says for one that has leaked.
func (k *kubeadmCluster) podWebhookAuthorityGoes() {
	const bundle = `kubectl get mutatingwebhookconfigurations pod-identity-webhook -o jsonpath='{.webhooks[0].clientConfig.caBundle}' | sha256sum`
	was := k.run(bundle)
	k.run(`kubectl -n ` + podWebhookNamespace + ` patch secret ` + podWebhookName + `-authority --type=json -p='[{"op":"remove","path":"/data"}]'`)
	emptied := time.Now()
	k.says("changed", `test "$(`+bundle+`)" = "`+was+`" && echo same || echo changed`)
	k.steps().eventually("every replica has a certificate of the new authority", func() error {
		return is(k.run(`kubectl get mutatingwebhookconfigurations pod-identity-webhook -o jsonpath='{.webhooks[0].clientConfig.caBundle}' | base64 -d >/root/bundle.pem
			for ip in $(`+podWebhookPods+` -o jsonpath='{.items[*].status.podIP}'); do openssl s_client -connect $ip:8443 -CAfile /root/bundle.pem -cert /etc/kubernetes/pki/front-proxy-client.crt -key /etc/kubernetes/pki/front-proxy-client.key </dev/null 2>/dev/null | grep -o 'Verify return code: [0-9]*' | sort -u; done | sort -u`), "Verify return code: 0")
	})
	k.t.Logf("%s after the Secret was emptied, every replica had a certificate of another authority", time.Since(emptied).Round(time.Millisecond))
	k.podWebhookAnswers()
	if !k.identified("after") {
		k.t.Error("with another authority it gives no role")
	}
	k.run("kubectl delete pod after by-helm --now")
}
