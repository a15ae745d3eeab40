// SPDX-License-Identifier: Apache-2.0

package nodeevidence

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/node/imds"
)

const (
	// clockSkew is how wrong a clock may be: AWS and Muster refuse tokens that are older (aws-iam-authenticator, pkg/token).
	clockSkew = 15 * time.Minute
	// diskShare is the part of a disk below which it is full: the kubelet evicts below a tenth (nodefs.available).
	diskShare = 100
)

// kubelet asks whether the kubelet runs.
func (r *reading) kubelet(ctx context.Context, config kubeletConfig) {
	port := int32(10248)
	if config.HealthzPort != nil {
		port = *config.HealthzPort
	}
	if port == 0 {
		r.runs = r.units[kubeletUnit].Active()
		r.unseen("the kubelet's health", errors.New("its configuration switches healthzPort off"))
		return
	}
	at := "http://" + net.JoinHostPort(cmp.Or(config.HealthzBindAddress, "127.0.0.1"), strconv.Itoa(int(port))) + "/healthz"
	err := r.Probes.Healthz(ctx, at)
	if r.runs = err == nil && stateOf(r.units[kubeletUnit]) != "auto-restart"; r.runs { // between two ends it may answer

		r.facts.Steps[cause.KubeletStarted] = time.Time{}
	} else if err != nil {
		r.see("Kubelet/NotHealthy", false, "curl "+at, err.Error())
	}
}

// runtime asks the container runtime for its version.
func (r *reading) runtime(ctx context.Context, config kubeletConfig) {
	socket := r.disk.socket(config)
	_, err := r.Probes.Runtime(ctx, r.disk.path(socket))
	if err == nil || !r.settled() {
		return
	}
	code := "Runtime/NoCRI"
	if _, missing := os.Stat(r.disk.path(socket)); errors.Is(missing, fs.ErrNotExist) {
		code = "Runtime/NoSocket"
	}
	if errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied") {
		r.unseen("the container runtime at "+socket, fmt.Errorf("%w: run it with sudo", err))
		return
	}
	if unit, ok := r.units[containerdUnit]; ok && !unit.Exists() && socket == defaultSocket {
		code = "Runtime/NotInstalled"
	}
	r.see(code, true, "crictl --runtime-endpoint unix://"+socket+" version", fmt.Sprintf("the container runtime at %s: %v", socket, err))
}

// certificates looks at the certificate that the kubelet proves itself by.
func (r *reading) certificates() {
	k := r.kubeconfig
	switch {
	case k.path == "":
		return
	case k.byRole:
		r.certified = true
		return
	case k.certificate == "":
		r.certified = !k.bootstrap
		r.tokenRefused()
		return
	}
	raw, err := r.disk.read(k.certificate)
	if errors.Is(err, fs.ErrNotExist) {
		r.see("ClientCertificate/Missing", false, "ls -l "+k.certificate, k.certificate+" is not there: the kubelet has not got its certificate yet")
		r.tokenRefused()
		return
	}
	if err != nil {
		r.unseen("the kubelet's certificate", err)
		return
	}
	certificate := firstCertificate(raw)
	if certificate == nil {
		r.see("ClientCertificate/Unreadable", true, "openssl x509 -noout -text -in "+k.certificate, k.certificate+" has no certificate that can be read")
		return
	}
	if name, ok := strings.CutPrefix(certificate.Subject.CommonName, "system:node:"); ok {
		r.facts.Names["$NODE"] = name
	}
	look := "openssl x509 -noout -dates -subject -in " + k.certificate
	switch {
	case r.Now.After(certificate.NotAfter):
		r.see("ClientCertificate/Expired", true, look, fmt.Sprintf("%s has expired at %s", k.certificate, certificate.NotAfter.UTC().Format(time.RFC3339)))
	case r.Now.Before(certificate.NotBefore):
		r.see("ClientCertificate/NotYetValid", true, look, fmt.Sprintf("%s is valid from %s, and the clock of this host says %s", k.certificate, certificate.NotBefore.UTC().Format(time.RFC3339), r.Now.UTC().Format(time.RFC3339)))
	default:
		r.certified = true
	}
}

// tokenRefused notes that the API server refuses the token by which the kubelet asks for its first certificate. The
// kubelet has nothing else to prove itself by then, so that the refusal is about the token.
func (r *reading) tokenRefused() {
	if r.disk.first(bootstraps...) == "" && !r.kubeconfig.bootstrap {
		return
	}
	for _, line := range slices.Backward(r.lines) {
		if strings.Contains(line.Text, "cannot create certificate signing request: Unauthorized") {
			r.see("Bootstrap/Unauthorized", true, "journalctl -u kubelet --since -1min", line.Text)
			return
		}
	}
}

// firstCertificate is the first certificate of PEM; nil if there is none.
func firstCertificate(raw []byte) *x509.Certificate {
	for {
		var block *pem.Block
		if block, raw = pem.Decode(raw); block == nil {
			return nil
		}
		if block.Type == "CERTIFICATE" {
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil
			}
			return certificate
		}
	}
}

// endpoint looks whether the API server can be reached, is the one that the kubelet trusts, and has the same time.
func (r *reading) endpoint(ctx context.Context) {
	k := r.kubeconfig
	if k.server == "" || checkAuthority(k.authority) != nil {
		return
	}
	if file := r.disk.proxied(); file != "" {
		r.reached = true // as far as anybody can see
		r.unseen("the way to the API server", fmt.Errorf("%s has the kubelet go by a proxy", file))
		return
	}
	server, err := url.Parse(k.server)
	if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil {
		r.see("Endpoint/NotAnAddress", true, "cat "+k.path, "the address of the API server in "+k.path+" is not https://HOST:PORT")
		return
	}
	livez := server.JoinPath("livez").String()
	at, err := r.Probes.Answer(ctx, livez, k.authority)
	look := "curl --cacert CA " + server.String() + "/livez"
	if err != nil && hangs(err) {
		if _, small := r.Probes.SmallAnswer(ctx, livez, k.authority); small == nil {
			r.see("Endpoint/LargePacketsDropped", true, "ip link; ip route get "+server.Hostname(), fmt.Sprintf("%v; with packets of at most %d bytes it answers", err, smallPacket))
			return
		}
	}
	if err != nil {
		r.see("Endpoint/"+codeOf(err), true, look, err.Error())
		return
	}
	r.reached = true
	if r.runs { // else nothing but this look has reached it
		r.facts.Steps[cause.EndpointReached] = time.Time{}
	}
	if skew := r.Now.Sub(at).Abs(); !at.IsZero() && skew > clockSkew && r.settled() {
		r.see("Clock/Wrong", true, "timedatectl", fmt.Sprintf("the clock of this host says %s, that of the API server %s", r.Now.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339)))
	}
}

// metadata asks for the instance's role, which a kubelet needs whose tokens a program makes.
func (r *reading) metadata(ctx context.Context) {
	if !r.kubeconfig.byRole {
		return
	}
	role, err := r.Probes.Role(ctx)
	const look = "curl -H 'X-aws-ec2-metadata-token: TOKEN' http://" + imds.Address + "/latest/meta-data/iam/security-credentials/"
	switch {
	case errors.Is(err, imds.ErrNotFound) || err == nil && role == "":
		r.see("Metadata/NoRole", true, look, "the instance metadata service has no role for this instance")
	case err != nil:
		r.see("Metadata/NoAnswer", !r.runs, look, err.Error())
	}
}

// files looks at the disk and at the configuration of pods' network.
func (r *reading) files() {
	const dir = "/var/lib/kubelet"
	if free, all, err := r.Probes.Free(r.disk.path(dir)); err == nil && all > 0 && free < all/diskShare {
		r.see("Disk/Full", true, "df -h "+dir, fmt.Sprintf("%d MiB of %d MiB are free at %s", free>>20, all>>20, dir))
	}
	if !r.runs || !r.reached || !r.certified { // the network plugin comes after that
		return
	}
	entries, err := os.ReadDir(r.disk.path(cniDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.unseen("the configuration of pods' network", err)
		return
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		name := e.Name()
		return strings.HasSuffix(name, ".conf") || strings.HasSuffix(name, ".conflist") || strings.HasSuffix(name, ".json")
	}) {
		r.see("CNI/NoConfig", true, "ls "+cniDir, cniDir+" has no configuration of a network plugin")
	}
}
