// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/test/promise"
)

const promisedService = `---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, selector: {app: web-0}, ports: [{port: 80, targetPort: 8080}]}}
`

// processesBack kills each process that people notice, in turn, and then a part of the management plane, after which a
// user is deleted. The guard goes with the service, since it starts a service again later that ended a moment ago; both
// are started by the other.
func (w *promises) processesBack() {
	machine, vpc := w.machines[0], w.vpcProcess()
	w.apply(strings.NewReplacer("NAME", "web-0", "ACCOUNT", "default", "NODE", machine.node).Replace(promisedPod) + promisedService)
	balancer, _ := w.balancerOf("web")
	reached := func() error { _, err := askPod(w.t.Context(), balancerClient(), "http://"+balancer+"/"); return err }
	w.eventually("the balancer answers", reached)
	creator := w.creator()
	verified := func() error {
		code, user, why, err := w.review(w.t.Context(), w.token(creator, "muster"))
		if err == nil && (code != http.StatusOK || user.Username != creatorARN) {
			err = fmt.Errorf("%d user %q, %+v", code, user.Username, why)
		}
		return err
	}
	api := w.apiServer()
	var names []string
	for n := range promisedTimes {
		names = append(names, fmt.Sprintf("later-%d", n))
	}
	for n, o := range w.outsiders(names...) {
		w.ends("authenticator")
		w.within(promise.AuthenticatorBack, "the authenticator was killed", verified)
		w.ends(component.Front)
		w.within(promise.FrontBack, "the front was killed", func() error {
			_, err := api.get(w.t.Context(), tls.Certificate{}, "/readyz")
			return err
		})
		w.ends("balancer-" + vpc)
		w.within(promise.BalancerBack, "the balancer was killed", reached)
		w.ends(vpc)
		w.within(promise.NetworkBack, "the process of the VPC was killed", func() error {
			_, err := w.fromMachine(machine, http.MethodPut, "http://169.254.169.254/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "60")
			return err
		})
		w.ends(vpc + "-egress")
		w.within(promise.WayOutBack, "the process of the way out was killed", func() error { return w.reaches(machine, farAddress+":80") })
		old := w.ends("guard")
		w.eventually("the guard is back", func() error {
			if now, err := w.running(); err != nil || now["guard"].PID == old || now["guard"].PID == 0 {
				return fmt.Errorf("%+v, %w", now["guard"], err)
			}
			return nil
		})
		w.ends("serve")
		w.within(promise.ServiceBack, "the service was killed", func() error {
			answer, err := w.aws.send(awsForm("sts", "GetCallerIdentity"))
			if err == nil && answer.code() != "" {
				err = errors.New(answer.code())
			}
			return err
		})
		w.within(promise.TokensAfterOutage, "the service is back", verified)
		w.ready()
		w.afterOutage(o, []string{"management-apiserver", "management-etcd"}[n%2])
		w.ready()
	}
}

// ends kills a process and waits for its end, since one that is ending may answer a last question. It returns the
// number of the process.
func (w *promises) ends(name string) int {
	w.t.Helper()
	p, ok := w.processes()[name]
	if !ok {
		w.t.Fatalf("no process %s runs", name)
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		w.t.Fatal(err)
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			w.t.Fatalf("%s has not ended: %v", name, err)
		}
		return p.PID
	}
}

// afterOutage kills a part of the management plane and deletes a user as soon as that takes it.
func (w *promises) afterOutage(o *outsider, process string) {
	w.t.Helper()
	object := w.objectOf(o)
	if code, user, why, err := w.review(w.t.Context(), o.token); err != nil || user.Username != o.name {
		w.t.Fatalf("%s is not let in before the outage: %d %+v: %v", o.name, code, why, err)
	}
	w.ends(process)
	w.eventually("the user is deleted", func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		err := w.management.Resource(iamUsers).Delete(ctx, object, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) { // an answer may be lost
			return nil
		}
		return err
	})
	w.within(promise.AccessRevokedAfterOutage, "a user is deleted after "+process+" was killed", w.turnedAway(o))
}
