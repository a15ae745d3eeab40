// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/node/userdata"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/host"
)

// readFacts finds out what the machine is.
func readFacts() (render.Facts, error) {
	memory, err := host.Memory()
	if err != nil {
		return render.Facts{}, err
	}
	cgroups, err := host.ReadCgroups()
	if err != nil {
		return render.Facts{}, err
	}
	kernel, err := host.Kernel()
	if err != nil {
		return render.Facts{}, err
	}
	resource, err := host.Capable(unix.CAP_SYS_RESOURCE)
	if err != nil {
		return render.Facts{}, err
	}
	servers, domains, err := resolver("/etc/resolv.conf")
	if err != nil {
		return render.Facts{}, err
	}
	files, err := host.OpenFiles()
	if err != nil {
		return render.Facts{}, err
	}
	return render.Facts{
		OpenFiles: files,
		CPUs:      host.CPUs(), MemoryBytes: memory, CgroupVersion: cgroups.Version(), Kernel: kernel,
		SysResource: resource, OverlayFS: overlays(imageDir), Authenticator: authenticator(),
		NameServers: servers, SearchDomains: domains,
	}, nil
}

// resolver reads which name servers are asked and which domains searched. No file is none of both.
func resolver(path string) (servers, domains []string, err error) {
	config, err := dns.ClientConfigFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the machine's name servers: %w", err)
	}
	return config.Servers, config.Search, nil
}

// authenticator is where this machine has aws-iam-authenticator.
func authenticator() string {
	if !exists(render.PathAuthenticator) && exists(render.PathAuthenticatorFallback) {
		return render.PathAuthenticatorFallback
	}
	return render.PathAuthenticator
}

// overlays tries whether a directory's file system can be the upper layer of an overlay: another overlay, or NFS, cannot.
func overlays(dir string) bool {
	base, err := os.MkdirTemp(dir, overlayTry)
	if err != nil {
		return false
	}
	defer func() { _ = os.RemoveAll(base) }()
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			return false
		}
	}
	options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", base, base, base)
	merged := filepath.Join(base, "merged")
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		return false
	}
	return unix.Unmount(merged, 0) == nil
}

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
			a.log.Error(sentence, "error", err)
			a.report(reason, sentence+": "+err.Error())
			said = err.Error()
		}
		if !sleep(ctx, askInterval) {
			return false
		}
	}
}

// become makes the files that follow from what the machine is told.
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
	failed = append(failed, refusedBootstrap(a.config.DropInDir)...)
	merged, err := nodeconfig.Read(append(documents, now.dropIns...), false)
	if err := a.mayGoOn(merged.Spec, failed, err); err != nil {
		return err
	}
	say := func(what string) { a.log.Info("discovery", "found", what) }
	self := a.self()
	name := render.NodeName(merged.Spec, self)
	if whose, ok := a.credential.anothers(name, time.Now()); ok && a.booted {
		return fmt.Errorf("by what this machine is told it is node %s, and its certificate is that of %s: it becomes another node when it boots, and not before", name, whose)
	}
	notice := func(what string) { a.log.Warn("this machine was not as it should be", "found", what) }
	joined, err := a.credential.regain(name, time.Now(), notice)
	if err != nil {
		return err
	}
	spec, err := a.credential.prove(ctx, merged.Spec, joined, a.metadata, time.Now(), say)
	if err != nil {
		return err
	}
	spec, err = settle(ctx, spec, joined, say)
	if err != nil {
		return err
	}
	files, err := render.Files(spec, self, a.facts, render.MachineLayout())
	if err != nil {
		return err
	}
	if err := a.checkKubelet(ctx, spec, files); err != nil {
		return err
	}
	if notes := render.Notes(spec, render.MachineLayout()); !slices.Equal(notes, a.notes) {
		a.log.Warn("user data says what is done in another way here", "notes", strings.Join(notes, "; "))
		a.notes = notes
	}
	if err := PrepareDisks(ctx, spec.Instance.LocalStorage, false, "", a.noteDisks); err != nil {
		return err
	}
	if err := a.credential.disown(name, time.Now(), notice); err != nil {
		return err
	}
	if err := write(files, joined, notice); err != nil {
		return err
	}
	a.booted = true
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.spec = spec
	return nil
}

// mayGoOn returns why the machine does not become a node, if parts of its user data failed or its NodeConfig could not be read.
func (a *agent) mayGoOn(spec nodeconfig.Spec, failed []string, unread error) error {
	switch {
	case len(failed) == 0:
		return unread
	case unread != nil:
		return errors.Join(userDataFailure(failed), unread)
	case spec.Instance.UserDataFailurePolicy != nodeconfig.Ignore:
		return userDataFailure(append(failed, "to go on nevertheless, set spec.instance.userDataFailurePolicy: Ignore in a NodeConfig of "+nodeconfig.APIVersion))
	}
	if ignored := strings.Join(failed, "; "); ignored != a.ignored {
		a.log.Warn("user data failed; this machine becomes a node nevertheless, as its NodeConfig says", "failed", ignored)
		a.ignored = ignored
	}
	return nil
}

func (a *agent) setHeard(now told) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.heard = now
}

// self is who the machine is by now: it may have been given another address.
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

// write writes files; those that are right already are left alone, and a machine that has joined needs no token. Say is told of those
// that more could read or write than should.
func write(files []render.File, joined bool, say func(string)) error {
	for _, file := range files {
		if file.Path == render.PathBootstrapKubeconfig && joined {
			continue
		}
		if was, ok := loosened(file); ok {
			say(fmt.Sprintf("%s had mode %04o, and has %04o again", file.Path, was, file.Mode))
		}
		if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil { //nolint:gosec // G301: as on every node
			return fmt.Errorf("making directory: %w", err)
		}
		if err := atomicfile.Write(file.Path, file.Content, file.Mode); err != nil {
			return err
		}
	}
	return nil
}

// loosened reports whether a file is there with more permissions than it is to have.
func loosened(file render.File) (was fs.FileMode, ok bool) {
	info, err := os.Lstat(file.Path)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&^file.Mode != 0
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

// again starts the kubelet anew, with what the machine is told now if that can be used, because somebody asked for it.
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
