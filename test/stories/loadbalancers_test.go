// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// balanced is a Deployment as its users write one, with Services of type LoadBalancer in front of it and of the
// cluster's name server.
const balanced = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: muster.dev/workload:v1
        imagePullPolicy: IfNotPresent
        args: [serve]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 3}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: nodes, annotations: {service.beta.kubernetes.io/aws-load-balancer-nlb-target-type: instance}}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: inner, annotations: {service.beta.kubernetes.io/aws-load-balancer-scheme: internal}}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: names, namespace: kube-system}
spec: {type: LoadBalancer, selector: {k8s-app: kube-dns}, ports: [{name: udp, protocol: UDP, port: 53}, {name: tcp, port: 53}]}
---
apiVersion: v1
kind: Service
metadata: {name: refused, annotations: {service.beta.kubernetes.io/aws-load-balancer-ssl-cert: "arn:aws:acm:us-east-1:000000000000:certificate/x"}}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 443, targetPort: 8080}]}
`

// Services of type LoadBalancer are opened from the host and from pods, while pods roll and processes are killed.
//
//story:about network/balancer network/balancerplan network/loadbalancercontroller machine/balancerstore network/balancerrange network/loadbalancer
func TestLoadBalancers(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "2")
	i.apply(balanced)
	i.mustKubectl("rollout", "status", "deployment/web", "--timeout=120s")
	i.mustKubectl("rollout", "status", "-n", "kube-system", "deployment/coredns", "--timeout=120s") // names are asked from pods
	for _, step := range []struct {
		name string
		do   func(*testing.T, *installation)
	}{
		{"opened from the host and from pods", balancersReached},
		{"no request fails while pods roll", noRequestFails},
		{"UDP", balancersOfNames},
		{"what is refused says so", balancerRefused},
		{"a range of the host", balancersOfARange},
		{"processes are killed", balancersKilled},
		{"deleted", balancersDeleted},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(t, i.in(t)) }) {
			return
		}
	}
}

// balancerOf waits for the entry of a Service's status.
func (i *installation) balancerOf(service string, args ...string) (ip, name string) {
	i.t.Helper()
	took := i.eventually("Service "+service+" has an address", func() error {
		out, err := i.kubectl(append([]string{"get", "service", service, "-o", "jsonpath={.status.loadBalancer.ingress[0].ip} {.status.loadBalancer.ingress[0].hostname} {.status.loadBalancer.ingress[0].ipMode}"}, args...)...)
		if err != nil {
			return err
		}
		if fields := strings.Fields(out); len(fields) == 3 && fields[2] == "Proxy" {
			ip, name = fields[0], fields[1]
			return nil
		}
		return errors.New(out)
	})
	i.t.Logf("Service %s is at %s, %s, after %s", service, ip, name, took.Round(10*time.Millisecond))
	return ip, name
}

// balancerClient makes a connection for each request.
func balancerClient() *http.Client {
	return &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
}

func askPod(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), "web-")) {
		err = fmt.Errorf("%s: %q", response.Status, body)
	}
	return strings.TrimSpace(string(body)), err
}

func balancersReached(t *testing.T, i *installation) {
	for _, service := range []string{"web", "nodes"} {
		ip, name := i.balancerOf(service)
		i.eventually("Service "+service+" answers", func() error { // kube-proxy hears of ports of nodes a moment later
			_, err := askPod(t.Context(), balancerClient(), "http://"+ip+"/")
			return err
		})
		seen := map[string]bool{}
		i.eventually("Service "+service+" reaches each pod", func() error { // health checks see pods a moment later; no request fails meanwhile
			for range 40 {
				pod, err := askPod(t.Context(), balancerClient(), "http://"+ip+"/")
				if err != nil {
					t.Fatalf("Service %s, which has answered: %v", service, err)
				}
				seen[pod] = true
			}
			if len(seen) != 3 {
				return fmt.Errorf("requests reached %v", seen)
			}
			return nil
		})
		if got := i.mustKubectl("exec", "deployment/web", "--", "/workload", "fetch", "http://"+name+"/"); !strings.HasPrefix(got, "web-") {
			t.Errorf("Service %s by its name from a pod: %q", service, got)
		}
	}
	ip, name := i.balancerOf("inner")
	if _, err := askPod(t.Context(), &http.Client{Timeout: time.Second}, "http://"+ip+"/"); err == nil {
		t.Errorf("the host reaches the internal %s", ip)
	}
	if got := i.mustKubectl("exec", "deployment/web", "--", "/workload", "resolve", name); strings.TrimSpace(got) != ip {
		t.Errorf("%s is %q, and the status has %s", name, got, ip)
	}
	if got := i.mustKubectl("exec", "deployment/web", "--", "/workload", "fetch", "http://"+name+"/"); !strings.HasPrefix(got, "web-") {
		t.Errorf("the internal one from a pod: %q", got)
	}
}

// noRequestFails sends 10,000 requests, each by a connection of its own, while the pods are replaced again and again.
func noRequestFails(t *testing.T, i *installation) {
	const requests, clients = 10_000, 8
	ip, _ := i.balancerOf("web")
	var sent, failed, rollouts atomic.Int64
	seen := sync.Map{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	begun := time.Now()
	for range clients {
		group.Go(func() {
			client := balancerClient()
			for ctx.Err() == nil && sent.Add(1) <= requests {
				pod, err := askPod(ctx, client, "http://"+ip+"/")
				if err != nil && failed.Add(1) <= 5 {
					t.Errorf("a request after %s: %v", time.Since(begun).Round(time.Millisecond), err)
				}
				seen.Store(pod, true)
				select { // for two rollouts or more
				case <-ctx.Done():
				case <-time.After(25 * time.Millisecond):
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	for going := true; going; {
		i.mustKubectl("rollout", "restart", "deployment/web")
		i.mustKubectl("rollout", "status", "deployment/web", "--timeout=120s")
		rollouts.Add(1)
		select {
		case <-done:
			going = false
		default:
		}
	}
	pods := 0
	seen.Range(func(any, any) bool { pods++; return true })
	t.Logf("%d of %d requests failed in %s, during %d rollouts; %d pods answered", failed.Load(), requests, time.Since(begun).Round(time.Second), rollouts.Load(), pods)
	if failed.Load() > 0 || rollouts.Load() < 2 || pods < 6 {
		t.Errorf("%d requests failed during %d rollouts, answered by %d pods", failed.Load(), rollouts.Load(), pods)
	}
}

// balancersOfNames asks the cluster's name server from the host.
func balancersOfNames(t *testing.T, i *installation) {
	ip, _ := i.balancerOf("names", "-n", "kube-system")
	for _, network := range []string{"udp", "tcp"} {
		query := new(dns.Msg).SetQuestion("kubernetes.default.svc.cluster.local.", dns.TypeA)
		i.eventually("names are answered over "+network, func() error {
			reply, _, err := (&dns.Client{Net: network, Timeout: 2 * time.Second}).ExchangeContext(t.Context(), query, net.JoinHostPort(ip, "53"))
			if err == nil && len(reply.Answer) != 1 {
				err = fmt.Errorf("%v", reply)
			}
			return err
		})
	}
}

func balancerRefused(t *testing.T, i *installation) {
	i.eventually("the Event is there", func() error {
		out, err := i.kubectl("get", "events", "--field-selector", "involvedObject.name=refused", "-o", "jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(out, "aws-load-balancer-ssl-cert: the balancer does not end TLS") {
			err = errors.New(out)
		}
		return err
	})
	if out := i.mustKubectl("get", "service", "refused", "-o", "jsonpath={.status.loadBalancer}"); out != "{}" {
		t.Errorf("it has an address all the same: %s", out)
	}
}

// balancersKilled kills the process of the load balancers, and then the service: addresses stay, and connections are
// made again.
func balancersKilled(t *testing.T, i *installation) {
	ip, _ := i.balancerOf("web")
	i.kill("balancer-" + i.vpcProcess())
	took := i.eventually("the balancer answers again", func() error {
		_, err := askPod(t.Context(), balancerClient(), "http://"+ip+"/")
		return err
	})
	t.Logf("the balancer answers %s after it was killed", took.Round(10*time.Millisecond))
	i.kill("guard")
	i.kill("serve")
	for range 50 { // nothing of it needs the service
		if _, err := askPod(t.Context(), balancerClient(), "http://"+ip+"/"); err != nil {
			t.Fatalf("while the service is away: %v", err)
		}
	}
	i.muster("up", "--nodes", "2")
	i.mustKubectl("rollout", "restart", "deployment/web")
	i.mustKubectl("rollout", "status", "deployment/web", "--timeout=120s")
	i.eventually("the new pods answer", func() error {
		_, err := askPod(t.Context(), balancerClient(), "http://"+ip+"/")
		return err
	})
	if again, _ := i.balancerOf("web"); again != ip {
		t.Errorf("it was at %s and is at %s", ip, again)
	}
}

func balancersDeleted(t *testing.T, i *installation) {
	ip, _ := i.balancerOf("web")
	i.mustKubectl("delete", "service", "web", "nodes", "inner", "refused", "--timeout=30s")
	if _, err := net.DialTimeout("tcp", net.JoinHostPort(ip, "80"), time.Second); err == nil {
		t.Errorf("somebody listens at %s", ip)
	}
	i.mustKubectl("patch", "service", "names", "-n", "kube-system", "-p", `{"spec": {"type": "ClusterIP"}}`)
	i.eventually("the process of the balancers has ended", func() error {
		if _, runs := i.processes()["balancer-"+i.vpcProcess()]; runs {
			return errors.New("it runs")
		}
		return nil
	})
	if out := i.mustKubectl("get", "service", "names", "-n", "kube-system", "-o", "jsonpath={.status.loadBalancer} {.metadata.finalizers}"); strings.TrimSpace(out) != "{}" {
		t.Errorf("what is left of it: %q", out)
	}
}
