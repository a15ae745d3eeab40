// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"time"

	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/registryhosts"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/node/userdata"
)

// configure makes the machine's files out of what it is told. It waits for better for as long as that is bad.
func (a *agent) configure(ctx context.Context) bool {
	said := ""
	for {
		now, err := a.ask(ctx)
		if err == nil {
			a.setHeard(now)
			err = a.become(ctx, now)
		}
		if err == nil {
			a.over()
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if err.Error() != said {
			reason, sentence := failure(err)
			a.log.Error(sentence, "error", err) //nolint:sloglint // failure has the few sentences there are
			a.report(reason, sentence+": "+err.Error())
			said = err.Error()
		}
		if !sleep(ctx, askInterval) {
			return false
		}
	}
}

// become makes the files that follow from what the machine is told. Scripts of the user data run first, once.
func (a *agent) become(ctx context.Context, now told) error {
	a.becoming.Lock()
	defer a.becoming.Unlock()
	parts, err := userdata.Read(now.userData)
	if err != nil {
		return err
	}
	documents, failed := userdata.NodeConfigs(parts)
	failed = append(failed, userdata.Ignored(parts)...)
	if scripts := scriptsOf(parts); len(scripts) > 0 {
		failures, err := a.runScripts(ctx, scripts)
		if err != nil {
			return err
		}
		failed = append(failed, failures...)
		if now.dropIns, err = readDropIns(ctx, a.config.DropInDir); err != nil { // bootstrap.sh leaves one
			return err
		}
		a.setHeard(now)
	}
	if err := registryhosts.Yield(registryhosts.Dir); err != nil {
		return err
	}
	spec, err := a.pipeline().become(ctx, append(documents, now.dropIns...), append(failed, refusedBootstrap(a.config.DropInDir)...))
	if err != nil {
		return err
	}
	a.booted = true
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.spec = spec
	return nil
}

// pipeline is that of this machine. The facts of the machine were found when it booted: by now its files have the
// agent's own values.
func (a *agent) pipeline() pipeline {
	return pipeline{
		credential: a.credential, metadata: a.metadata, layout: render.MachineLayout(), self: a.self(), keepsName: a.booted,
		facts: func() (render.Facts, error) { return a.facts, nil },
		check: a.runCheck, tool: a.runTool, write: writeOn(a), say: a.say,
	}
}

// say logs what a step of the pipeline says. Each that comes again at every attempt is logged when it changes.
func (a *agent) say(step step, text string) {
	if step != stepSettle && a.said[step] == text {
		return
	}
	a.said[step] = text
	switch step {
	case stepJudge:
		a.log.Warn("user data failed; this machine becomes a node nevertheless, as its NodeConfig says", "failed", text)
	case stepSettle:
		a.log.Info("discovery", "found", text)
	case stepNote:
		a.log.Warn("user data says what is done in another way here", "notes", text)
	case stepDisks:
		a.log.Info("local disks", "what", text)
	default:
		a.log.Warn("this machine was not as it should be", "found", text)
	}
}

func (a *agent) setHeard(now told) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.heard = now
}

// self is the machine's identity by now: it may have been given another address.
func (a *agent) self() render.Instance {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.instance
}

// current is what the machine was last told that could be used.
func (a *agent) current() nodeconfig.Spec {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.spec
}

// joined reports whether the machine's kubelet has a certificate of its own that is still good.
func (a *agent) joined() bool {
	return a.credential.joined(render.NodeName(a.current(), a.self()), time.Now())
}

// joins waits until the kubelet has joined, and then removes the token: it is of no more use to anybody here.
func (a *agent) joins(ctx context.Context) bool {
	if !poll(ctx, 20*time.Millisecond, a.joined) {
		return false
	}
	a.log.Info("kubelet has its credential")
	if err := os.Remove(render.PathBootstrapKubeconfig); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Error("cannot remove bootstrap token", "error", err)
	}
	if err := a.credential.forgetOthers(); err != nil {
		a.log.Error("cannot remove certificates", "error", err)
	}
	a.forget(ctx)
	return true
}

// askInterval is how often the machine asks whether it is told anything new, until it has joined.
const askInterval = time.Second

// watch brings a fresh token to a kubelet that has not joined yet.
func (a *agent) watch(ctx context.Context) {
	for sleep(ctx, askInterval) {
		if a.joined() {
			continue
		}
		now, err := a.ask(ctx)
		if err != nil {
			a.log.Warn("cannot ask for user data", "error", err)
			continue
		}
		a.mutex.Lock()
		same := now.equal(a.heard)
		a.mutex.Unlock()
		if same {
			continue
		}
		a.setHeard(now)
		if err := a.become(ctx, now); err != nil {
			a.log.Error("new user data cannot be used", "error", err)
			reason, _ := failure(err)
			a.report(reason, "what the machine was told since it was booted cannot be used: "+err.Error())
			continue
		}
		a.over(bootreport.NodeConfigRefused, bootreport.UserDataFailed, bootreport.DiskFull)
		a.log.Info("new user data; kubelet starts again")
		a.restartKubelet()
	}
}

// again starts the kubelet anew, with the machine's newest user data if usable, because somebody asked for it.
func (a *agent) again(ctx context.Context) {
	now, err := a.ask(ctx)
	if err == nil {
		a.setHeard(now)
		err = a.become(ctx, now)
	}
	if err != nil {
		a.log.Error("what the machine is told cannot be used; it goes on with what it was told before", "error", err)
	}
	a.restartKubelet()
}

func (a *agent) restartKubelet() {
	select {
	case a.kubelet.restart <- struct{}{}:
	default: // it is about to
	}
}

// startAnyway is how long the kubelet's start is put off while the API server does not answer. After that its own log
// should say why it does not.
const startAnyway = 15 * time.Second

// apiServerAnswers waits for the API server, since a kubelet that finds none tries again only after two seconds
// (pkg/kubelet/certificate/bootstrap, waitForServer). Its answer itself does not matter.
func (a *agent) apiServerAnswers(ctx context.Context, config nodeconfig.Spec) bool {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(config.Cluster.CertificateAuthority)
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12},
	}}
	waiting, cancel := context.WithTimeout(ctx, startAnyway)
	defer cancel()
	var last error
	answered := poll(waiting, 100*time.Millisecond, func() bool {
		request, err := http.NewRequestWithContext(waiting, http.MethodGet, config.Cluster.APIServerEndpoint+"/healthz", http.NoBody)
		if err != nil {
			last = err
			return false
		}
		response, err := client.Do(request)
		if err != nil {
			last = err
			return false
		}
		_ = response.Body.Close()
		return slices.Contains([]int{http.StatusOK, http.StatusUnauthorized, http.StatusForbidden}, response.StatusCode)
	})
	if answered {
		a.log.Info("API server answers", "endpoint", config.Cluster.APIServerEndpoint)
	} else if ctx.Err() == nil {
		a.log.Warn("API server does not answer", "endpoint", config.Cluster.APIServerEndpoint, "error", last)
	}
	return ctx.Err() == nil
}
