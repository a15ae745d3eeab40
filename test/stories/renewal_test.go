// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
)

// renewal issues every component's certificate anew, as the service does a month before the end, and sees all of them
// served by the processes that ran before.
func renewal(t *testing.T, i *installation) {
	before := i.processes()
	wanted, err := clusterconfig.Read(i.cluster().Record())
	if err != nil {
		t.Fatal(err)
	}
	ports, accountPorts := i.ports()
	accountConfig := component.Account{State: i.dir, BinDir: i.bin, VPC: true, Places: accountPorts.Places()}
	c := component.Config{Account: accountConfig, Dir: i.cluster(), Cluster: *wanted.Cluster, Places: ports.Places(), Simulates: true} // some machines were simulated before
	raw, err := os.ReadFile(i.cluster().Network())
	if err == nil {
		err = json.Unmarshal(raw, &c.Network)
	}
	if err != nil {
		t.Fatal(err)
	}
	own, err := account.Read(i.dir)
	if err != nil {
		t.Fatal(err)
	}
	c.Issuers = component.Issuers{Address: own.Address, Host: own.Address.String()}
	of, err := issuer.Read(i.cluster().Issuer())
	if err != nil {
		t.Fatal(err)
	}
	c.Issuer = component.Issuer{URL: of.String(), Keys: of.Keys(), ID: of.ID}
	old := map[string]string{}
	servers := map[string]component.Place{
		"etcd": c.Places.Etcd, "management-etcd": c.Account.Places.ManagementEtcd, "kube-apiserver": c.Places.APIServer0, "management-apiserver": c.Account.Places.ManagementServer0,
		"kube-controller-manager": c.Places.ControllerManager, "kube-scheduler": c.Places.Scheduler,
	}
	for name, server := range servers {
		old[name] = i.serial(server)
	}
	for _, pki := range []string{i.dir.PKI(), i.cluster().PKI()} {
		paths, err := filepath.Glob(filepath.Join(pki, "issued", "*.pem"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if err := os.Truncate(path, 0); err != nil { // it stays its component's
				t.Fatal(err)
			}
		}
	}
	credentials, err := component.Credentials(c)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := component.AccountCredentials(c.Account)
	if err != nil {
		t.Fatal(err)
	}
	shared = append(shared, component.Membership(c)...)
	if written, err := authority.NewStore(i.cluster().PKI()).Ensure(credentials, time.Now()); err != nil || len(written) != len(credentials) {
		t.Fatalf("issued %v (%v), not all %d", written, err, len(credentials))
	}
	if written, err := authority.NewAccountStore(i.dir.PKI()).Ensure(shared, time.Now()); err != nil || len(written) != len(shared) {
		t.Fatalf("the account issued %v (%v), not all %d", written, err, len(shared))
	}
	for name, server := range servers {
		took := i.eventually(name+" serves its new certificate", func() error {
			if now := i.serial(server); now == old[name] {
				return fmt.Errorf("it serves the old one, %s", now)
			}
			return nil
		})
		t.Logf("%s served its new certificate after %s", name, took.Round(time.Millisecond))
	}
	i.ready()
	// The API server's new client certificate is good for kubelets. It drops the connections that it made with the old
	// one, and with them whatever is asked at that very moment (client-go transport/cert_rotation.go).
	i.eventually("kubelets take the new certificate", func() error {
		_, err := i.kubectl("logs", "daemonset/hello")
		return err
	})
	for name, p := range i.processes() {
		if before[name].PID != p.PID {
			t.Errorf("%s was restarted (process %d, was %d)", name, p.PID, before[name].PID)
		}
	}
}

// serial is the number of the certificate that a component serves now.
func (i *installation) serial(of component.Place) string {
	i.t.Helper()
	// Only the number of the certificate is looked at.
	dialer := &tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(i.t.Context(), "tcp", of.Reach.String())
	if err != nil {
		i.t.Fatalf("asking %s for its certificate: %v", of.Reach, err)
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
}
