// SPDX-License-Identifier: Apache-2.0

// Package statedir has the paths of all files that muster keeps: one directory, private to its owner. Every path that
// two parts must agree on is a method here; nothing is written anywhere else.
package statedir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Env names the environment variable that chooses the state directory.
const Env = "MUSTER_STATE_DIR"

// maxLength keeps the unix sockets below the directory under the kernel's limit of 107 bytes (unix(7)).
const maxLength = 80

// Dir is the absolute path of a state directory.
type Dir string

// Default is the directory used when neither flag nor environment names one: /var/lib/muster for root, and
// $XDG_STATE_HOME/muster or ~/.local/state/muster for everybody else.
func Default() string {
	if dir := os.Getenv(Env); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/var/lib/muster"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "muster")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), fmt.Sprintf("muster-%d", os.Geteuid()))
	}
	return filepath.Join(home, ".local", "state", "muster")
}

// Open checks path and makes it absolute. It makes nothing: the directory need not exist.
// A directory that others may read, or that belongs to somebody else, is refused.
func Open(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding state directory %q: %w", path, err)
	}
	if abs, err = resolve(abs); err != nil {
		return "", fmt.Errorf("resolving state directory: %w", err)
	}
	if len(abs) > maxLength {
		return "", fmt.Errorf("state directory %s is %d bytes long; sockets below it need it to be %d at most: choose a shorter --state-dir", abs, len(abs), maxLength)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Dir(abs), nil
	case err != nil:
		return "", fmt.Errorf("looking at state directory: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("state directory %s is a file: choose another --state-dir", abs)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("state directory %s is open to others (mode %04o) and holds keys: chmod 700 %s", abs, info.Mode().Perm(), abs)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return "", fmt.Errorf("state directory %s belongs to user %d: run muster as that user, or choose another --state-dir", abs, stat.Uid)
	}
	return Dir(abs), nil
}

// resolve follows the links in what there is of a path. Its processes are found again by this name, so it must be the
// same before the directory is made and afterwards.
func resolve(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return resolved, err
	}
	parent, err := resolve(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// Exists reports whether the directory has ever been used.
func (d Dir) Exists() bool {
	_, err := os.Stat(d.Layout())
	return err == nil
}

func (d Dir) join(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

// Lock is the file that the one service of this directory holds locked.
func (d Dir) Lock() string { return d.join("lock") }

// GuardLock is the file that the one guard of this directory holds locked.
func (d Dir) GuardLock() string { return d.join("run", "guard.lock") }

// Clusters holds a directory for each cluster.
func (d Dir) Clusters() string { return d.join("clusters") }

// Account says which account this is: its id, region and address.
func (d Dir) Account() string { return d.join("account.json") }

// IDs says which users of the host the components of clusters are.
func (d Dir) IDs() string { return d.join("ids.json") }

// Issuers says where the issuers of the account's clusters answer.
func (d Dir) Issuers() string { return d.join("issuers.json") }

// LoadBalancers says which range of the host new load balancers have addresses of; it is not there while that is the
// default.
func (d Dir) LoadBalancers() string { return d.join("loadbalancers.json") }

// HostRoot lists the clusters whose machines may be the host's equals; it is not there while there are none.
func (d Dir) HostRoot() string { return d.join("host-root.json") }

// Ports remembers the account's ports, which were chosen once and are kept.
func (d Dir) Ports() string { return d.join("ports.json") }

// PKI holds the account's certificate authorities and the certificates of its components.
func (d Dir) PKI() string { return d.join("pki") }

// ManagementEtcd is the data of the management plane's etcd.
func (d Dir) ManagementEtcd() string { return d.join("management-etcd") }

// Layout is the file with the version of the directory's layout.
func (d Dir) Layout() string { return d.join("layout") }

// Run holds sockets.
func (d Dir) Run() string { return d.join("run") }

// Socket is where the service answers its command line.
func (d Dir) Socket() string { return d.join("run", "serve.sock") }

// socketOf is a socket of the cluster with a namespace, which can be longer than a socket's path.
func socketOf(d Dir, what, namespace string) string {
	sum := sha256.Sum256([]byte(namespace))
	return d.join("run", what+"-"+hex.EncodeToString(sum[:5])+".sock")
}

// EgressSocket is where the API server of the cluster with a namespace reaches into the VPC.
func (d Dir) EgressSocket(namespace string) string {
	return socketOf(d, "egress", namespace)
}

// ControlPlaneSocket is where the API server of the cluster with a namespace dials webhooks, those of its own flags and
// those that its users name.
func (d Dir) ControlPlaneSocket(namespace string) string {
	return socketOf(d, "controlplane", namespace)
}

// WebhookSocket is where what users name of that comes into the VPC.
func (d Dir) WebhookSocket(namespace string) string {
	return socketOf(d, "webhooks", namespace)
}

// AccountAPIsSocket is where the account serves APIs in the cluster with a namespace, for its API server.
func AccountAPIsSocket(d Dir, namespace string) string {
	return socketOf(d, "apis", namespace)
}

// TokenSocket is where the API server of the cluster with a namespace has service account tokens signed.
func (d Dir) TokenSocket(namespace string) string {
	return socketOf(d, "tokens", namespace)
}

// IdentitySocket is where the identity service tells authenticators the owners of access keys.
func (d Dir) IdentitySocket() string { return d.join("run", "identity.sock") }

// MetadataSocket is where the identity service serves role credentials to the instance metadata service and to the
// machine controllers.
func (d Dir) MetadataSocket() string { return d.join("run", "metadata.sock") }

// MachinesSocket is where the identity service answers STS and IAM for machines, by the VPC's relay.
func (d Dir) MachinesSocket() string { return d.join("run", "identity-machines.sock") }

// IAM holds what the identity service keeps beside the management plane.
func (d Dir) IAM() string { return d.join("iam") }

// IAMCredentials is the administrator's access key, as AWS's programs keep them.
func (d Dir) IAMCredentials() string { return d.join("iam", "credentials") }

// IAMConfig says where the identity service answers, as AWS's programs keep it.
func (d Dir) IAMConfig() string { return d.join("iam", "config") }

// IAMTrust has the system's certificate authorities and the account's, for programs that read SSL_CERT_FILE.
func (d Dir) IAMTrust() string { return d.join("iam", "trust.pem") }

// SessionKeys are what the identity service seals sessions with.
func (d Dir) SessionKeys() string { return d.join("iam", "session-keys.json") }

// PageKey is what the tokens of lists in the AWS APIs are sealed with.
func (d Dir) PageKey() string { return d.join("iam", "page.key") }

// Components holds a folder of files for each component of the account.
func (d Dir) Components() string { return d.join("components") }

// Component is the folder of the files of one of the account's components.
func (d Dir) Component(name string) string { return d.join("components", name) }

// Logs holds a file for each component of the account.
func (d Dir) Logs() string { return d.join("logs") }

// Log is where the standard output and error of one of the account's components go.
func (d Dir) Log(name string) string { return d.join("logs", name+".log") }

// Registry holds the repositories of the account's image registry.
func (d Dir) Registry() string { return d.join("registry") }

// IssuersSocket is where VPCs' relays reach the documents of service account issuers.
func (d Dir) IssuersSocket() string { return d.join("run", "issuers.sock") }

// PulledImages holds what was pulled from public registries.
func (d Dir) PulledImages() string { return d.join("registry", "pulled") }

// Registries is where people say which public registries images are pulled from.
func (d Dir) Registries() string { return d.join("registries.yaml") }

// Proxy is the proxy of the host, as `muster up` found it.
func (d Dir) Proxy() string { return d.join("proxy.json") }

// RegistrySocket says whether the image registry serves.
func (d Dir) RegistrySocket() string { return d.join("run", "registry.sock") }

// RegistryMachinesSocket is where VPCs' relays reach the image registry.
func (d Dir) RegistryMachinesSocket() string { return d.join("run", "registry-machines.sock") }

// RegistryLoginSocket is where the image registry asks the identity service about passwords.
func (d Dir) RegistryLoginSocket() string { return d.join("run", "registry-login.sock") }

// Images holds the container images that were loaded.
func (d Dir) Images() string { return d.join("images") }

// Machines holds a folder for each machine.
func (d Dir) Machines() string { return d.join("machines") }

// Machine is the folder of one machine.
func (d Dir) Machine(id string) string { return d.join("machines", id) }

// MachineDisk is the file in which a local machine's disk is, which is mounted at root in the machine's directory.
func (d Dir) MachineDisk(id string) string { return d.join("machines", id, "disk") }

// MachineRoot is where a machine's disk is, or its mount.
func MachineRoot(d Dir, id string) string { return d.join("machines", id, "root") }

// MachineLogs is where a machine keeps its logs.
func (d Dir) MachineLogs(id string) string { return d.join("machines", id, "root", "var", "log") }

// FileSystems holds a folder for each file system of volumes.
func (d Dir) FileSystems() string { return d.join("filesystems") }

// VPCs holds a folder for each VPC: its description, and what keeps its network namespace alive.
func (d Dir) VPCs() string { return d.join("vpc") }

// VPC is the folder of one VPC.
func (d Dir) VPC(id string) string { return d.join("vpc", id) }

// VPCSocket says whether the process of a VPC serves.
func (d Dir) VPCSocket(id string) string {
	return d.join("run", strings.TrimPrefix(id, "vpc-")+".sock")
}

// WayOutSocket says whether the way out of a VPC is open.
func (d Dir) WayOutSocket(id string) string {
	return d.join("run", strings.TrimPrefix(id, "vpc-")+".out")
}

// BalancerSocket says whether the load balancers of a VPC are served, and how they are.
func (d Dir) BalancerSocket(id string) string {
	sum := sha256.Sum256([]byte(id)) // the id itself makes the path too long for a socket's
	return d.join("run", "lb-"+hex.EncodeToString(sum[:5])+".sock")
}

// MetadataKey is what seals tokens of the instance metadata service of a VPC.
func (d Dir) MetadataKey(id string) string { return d.join("vpc", id, "metadata.key") }

// ManagementKubeconfig is the administrator's way into the management plane.
func (d Dir) ManagementKubeconfig() string { return d.join("kubeconfig", "management.yaml") }

// WrittenKubeconfigs lists the kubeconfigs outside of this directory that contexts were added to, a path a line.
func (d Dir) WrittenKubeconfigs() string { return d.join("kubeconfig", "written") }

// StackKey is what the secrets of CloudFormation's stacks are sealed with. Stacks cannot be read without it.
func StackKey(d Dir) string { return d.join("iam", "stacks.key") }

// Queues holds a folder for each queue of the account, with its messages.
func Queues(d Dir) string { return d.join("queues") }
