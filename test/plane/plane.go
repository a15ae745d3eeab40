// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/platform/release"
)

// Flow is a setting of the API server's priority and fairness.
type Flow int

const (
	// FlowDefault is upstream's: bootstrap tokens share global-default with everyone unclassified.
	FlowDefault Flow = iota
	// FlowBootstrap gives bootstrap tokens a level of their own.
	FlowBootstrap
)

// Config says which control plane.
type Config struct {
	Bin  string // directory of etcd, kube-apiserver and kube-controller-manager
	Flow Flow
	// APIServer are flags beside those that kubeadm gives it.
	APIServer []string
}

// Plane is a running control plane.
type Plane struct {
	// Etcd and APIServer are its processes.
	Etcd, APIServer *Process

	config Config
	dir    string
	server string
	store  authority.Store
	admin  *kubernetes.Clientset

	mu        sync.Mutex
	issued    []authority.Credential
	processes []*Process
}

// startTimeout is how long one program may take until it serves. On an idle machine all take five seconds together.
const startTimeout = 60 * time.Second

// attempts is how often a plane is begun: a port that was free may be somebody else's a moment later.
const attempts = 3

// Start runs etcd and an API server and returns when both serve and upstream's and kubeadm's RBAC rules are there.
func Start(ctx context.Context, c Config) (*Plane, error) {
	var errs error
	for range attempts {
		p, err := attempt(ctx, c)
		if err == nil {
			return p, nil
		}
		errs = errors.Join(errs, fmt.Errorf("making a control plane: %w", err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errs
}

func attempt(ctx context.Context, c Config) (*Plane, error) {
	dir, err := os.MkdirTemp("", "plane-")
	if err != nil {
		return nil, err
	}
	p := &Plane{config: c, dir: dir, store: authority.NewStore(filepath.Join(dir, "pki"))}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Plane) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.credentials(components()...); err != nil {
		return err
	}
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	etcd := "https://127.0.0.1:" + ports[0]
	if p.Etcd, err = p.Run("etcd", filepath.Join(p.config.Bin, "etcd"), p.etcd(etcd, "https://127.0.0.1:"+ports[1])...); err != nil {
		return err
	}
	p.server = "https://127.0.0.1:" + ports[2]
	if p.APIServer, err = p.Run("kube-apiserver", release.Default().Program(p.config.Bin, "kube-apiserver"), append(p.apiServer(etcd, ports[2]), p.config.APIServer...)...); err != nil {
		return err
	}
	config, err := p.RESTConfig("kubernetes-admin", "system:masters")
	if err != nil {
		return err
	}
	if p.admin, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if err := p.APIServer.Wait(ctx, "waiting for the API server", p.ready); err != nil {
		return err
	}
	if err := p.bindAsKubeadm(ctx); err != nil {
		return err
	}
	if p.config.Flow == FlowBootstrap {
		return p.flowOfBootstrap(ctx)
	}
	return nil
}

// ready asks the API server. Without etcd it would be waited for in vain: then the answer ends the waiting.
func (p *Plane) ready(ctx context.Context) error {
	select {
	case <-p.Etcd.Ended():
		return errors.Join(p.APIServer.Kill(), fmt.Errorf("etcd has ended; it printed at last:\n%s", p.Etcd.Tail()))
	default:
		return p.admin.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}
}

// Dir is the directory that everything lives in; whoever runs something beside the plane may put files there.
func (p *Plane) Dir() string { return p.dir }

// Server is the URL of the API server.
func (p *Plane) Server() string { return p.server }

// Admin is a client that may do everything.
func (p *Plane) Admin() *kubernetes.Clientset { return p.admin }

// Run starts a program beside the plane, which ends with it at the latest.
func (p *Plane) Run(name, path string, args ...string) (*Process, error) {
	process, err := launch(name, filepath.Join(p.dir, name+".log"), path, args...)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.processes = append(p.processes, process)
	return process, nil
}

// Command prepares a program of Bin that reads this kubeconfig, and is run to its end.
func (p *Plane) Command(ctx context.Context, kubeconfig, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, release.Default().Program(p.config.Bin, program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+p.dir, Environment+"="+p.dir)
	return cmd
}

// RunControllerManager starts kube-controller-manager with upstream's defaults and these flags beside them.
func (p *Plane) RunControllerManager(flags ...string) (*Process, error) {
	kubeconfig, err := p.Kubeconfig("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	args := append(p.controllerManager(kubeconfig), flags...)
	return p.Run("kube-controller-manager", release.Default().Program(p.config.Bin, "kube-controller-manager"), args...)
}

// RESTConfig is how a user in these groups, with a client certificate, reaches the API server. There are no client
// limits.
func (p *Plane) RESTConfig(user string, groups ...string) (*rest.Config, error) {
	file, err := p.Credential(user, groups...)
	if err != nil {
		return nil, err
	}
	config := p.Anonymous()
	pair, err := os.ReadFile(file) // a client would read the file again and again, also when the plane is gone
	if err != nil {
		return nil, fmt.Errorf("reading the credential of %s: %w", user, err)
	}
	config.CertData, config.KeyData = pair, pair
	return config, nil
}

// Anonymous is how somebody without credentials reaches the API server: to put a token in.
func (p *Plane) Anonymous() *rest.Config {
	return &rest.Config{Host: p.server, TLSClientConfig: rest.TLSClientConfig{CAFile: p.CA()}, QPS: -1}
}

// Close kills every process, waits until they are gone, and removes the directory.
func (p *Plane) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, process := range slices.Backward(p.processes) { // etcd last: nobody then logs that it is gone
		err = errors.Join(err, process.Kill())
	}
	p.processes = nil
	return errors.Join(err, os.RemoveAll(p.dir))
}

// freePorts finds ports that nobody listens on. All are held until all are found, so they differ.
func freePorts(ctx context.Context, n int) (ports []string, err error) {
	for range n {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a port: %w", err)
		}
		defer func() { _ = listener.Close() }()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("finding a port: %w", err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}
