// SPDX-License-Identifier: Apache-2.0

package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/node/nodeshell"
	"muster.dev/muster/internal/node/registryhosts"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/node/sshserver"
)

// writeEtc writes the few files below /etc that programs expect. Other files on the machine's disk stay as they are.
func writeEtc(order bootOrder) error {
	if order.Registry != "" {
		if err := errors.Join(registryhosts.Own(registryhosts.Dir, order.Registry, pathAccountCA), registryhosts.Mirror(registryhosts.Dir, order.Mirrored, order.Registry, pathAccountCA)); err != nil {
			return err
		}
	}
	for path, content := range etcFiles(order) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join("/etc", path)), 0o755); err != nil { //nolint:gosec // G301: everybody on the machine reads it
			return err
		}
		if err := replace(filepath.Join("/etc", path), []byte(content), 0o644); err != nil {
			return err
		}
	}
	// Files of the host's /etc that its programs need: the places of their libraries, and the names of protocols and
	// ports.
	for _, path := range []string{"ld.so.cache", "ld.so.conf", "protocols", "services"} {
		if err := copyFromHost(filepath.Join("/etc", path)); err != nil {
			return err
		}
	}
	// User data of Amazon Linux 2 calls this script; muster answers to its name.
	if err := os.MkdirAll("/etc/eks", 0o755); err != nil { //nolint:gosec // G301: the machine's own root; its parent is private
		return err
	}
	if err := os.MkdirAll(render.PathCredentialProviders, 0o755); err != nil { //nolint:gosec // G301: the same
		return err
	}
	return errors.Join(link(ownProgram, "/etc/eks/bootstrap.sh"), link(ownProgram, render.PathCredentialProviders+"/"+render.CredentialProvider), link("../usr/lib/os-release", "/etc/os-release"))
}

// etcFiles are the machine's identity and the users that images of containers and the host's programs name.
func etcFiles(order bootOrder) map[string]string {
	record := order.Record
	id := sha256.Sum256([]byte(record.ID))
	files := map[string]string{
		"aws/ca.pem":    order.Authority,
		"aws/config":    awsConfig(record.Region, order.Services),
		"group":         "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n" + loginGroups(),
		"hostname":      record.PrivateDNSName + "\n",
		"hosts":         fmt.Sprintf("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n%s %s\n", record.PrivateIP, record.PrivateDNSName),
		"machine-id":    hex.EncodeToString(id[:16]) + "\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
		"passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" + loginUsers(),
		"resolv.conf":   "# The VPC's name server, which knows its machines. Pods get the cluster's.\nnameserver " + order.NameServer.String() + "\nsearch " + record.Domain + "\n",
	}
	return files
}

// loginUsers are who logs in by SSH, where anybody may, and whom sshd runs as until then. Neither has a password.
func loginUsers() string {
	return fmt.Sprintf("%s:*:%d:%[2]d:EC2 Default User:%s:/bin/bash\n%s:*:%d:%[5]d:Privilege-separated SSH:/run/sshd:/usr/sbin/nologin\n",
		sshserver.User, sshserver.UserID, sshserver.Home, sshserver.PrivilegeUser, sshserver.PrivilegeUserID)
}

// loginGroups are theirs, and those of Amazon Linux that let the first one become root and read the journal.
func loginGroups() string {
	return fmt.Sprintf("wheel:x:%[1]d:%[2]s\n%[3]s:x:%[4]d:%[2]s\n%[2]s:x:%[5]d:\n%[6]s:x:%[7]d:\n",
		nodeshell.WheelID, sshserver.User, nodeshell.JournalGroup, nodeshell.JournalID, sshserver.UserID, sshserver.PrivilegeUser, sshserver.PrivilegeUserID)
}

// pathAccountCA is the file on a machine with the authority of what the account serves.
const pathAccountCA = "/etc/aws/ca.pem"

// awsConfig says to AWS's programs where STS and IAM are. They find the role's credentials by themselves, in instance
// metadata.
func awsConfig(region string, services netip.Addr) string {
	return "# Written by muster at every boot. Point AWS_CONFIG_FILE at it.\n[default]\nregion = " + region +
		"\nendpoint_url = https://" + services.String() + "\nca_bundle = " + pathAccountCA + "\n"
}

// replace writes a file in place of whatever is there, a link too.
func replace(path string, content []byte, mode fs.FileMode) error {
	temporary := path + ".new"
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	if err := os.WriteFile(temporary, content, mode); err != nil { //nolint:gosec // G703: below the machine's own root
		return err
	}
	return os.Rename(temporary, path)
}

func copyFromHost(path string) error {
	content, err := os.ReadFile(hostRoot + path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return replace(path, content, 0o644)
}
