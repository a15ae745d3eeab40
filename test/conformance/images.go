// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	imageutils "k8s.io/kubernetes/test/utils/image"
)

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// image stands in for one of upstream's: names and tags are what the suite asks for, and what is in it is made here.
type image struct {
	name   string   // below registryName; the suite says with which tags
	layers []string // the lowest first
	config ocispec.ImageConfig
}

// images are those that [Conformance] uses in any minor, laid out as the Dockerfiles in upstream's test/images say.
func images() []image {
	agnhost := ocispec.ImageConfig{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}}
	web := ocispec.ImageConfig{Entrypoint: []string{"/agnhost"}, Cmd: []string{"test-webserver"}}
	nginx := ocispec.ImageConfig{Cmd: []string{"nginx", "-g", "daemon off;"}, StopSignal: "SIGQUIT"}
	bash := ocispec.ImageConfig{Cmd: []string{"bash"}}
	return []image{
		{"build-image/distroless-iptables", []string{"debian", "names"}, bash},
		{"e2e-test-images/agnhost", []string{"debian", "names", "agnhost"}, agnhost},
		{"e2e-test-images/busybox", []string{"busybox"}, ocispec.ImageConfig{Cmd: []string{"sh"}}},
		{"e2e-test-images/glibc-dns-testing", []string{"debian", "names", "agnhost"}, bash}, // from 1.36 on
		{"e2e-test-images/httpd", []string{"debian", "names", "nginx", "httpd"}, nginx},     // up to 1.34
		{"e2e-test-images/ipc-utils", []string{"debian", "names"}, bash},
		{"e2e-test-images/jessie-dnsutils", []string{"debian", "names", "agnhost"}, bash}, // up to 1.35
		{"e2e-test-images/kitten", []string{"debian", "names", "agnhost", "kitten"}, web},
		{"e2e-test-images/nautilus", []string{"debian", "names", "agnhost", "nautilus"}, web},
		{"e2e-test-images/nginx", []string{"debian", "names", "nginx"}, nginx},
		{"e2e-test-images/nonewprivs", []string{"busybox", "nonewprivs"}, ocispec.ImageConfig{Cmd: []string{"nnp"}}},
		{"e2e-test-images/nonroot", []string{"debian", "names"}, ocispec.ImageConfig{Cmd: []string{"bash"}, User: "1234"}},
		{
			"e2e-test-images/regression-issue-74839",
			[]string{"busybox", "regression"},
			ocispec.ImageConfig{Entrypoint: []string{"/regression-issue-74839"}},
		},
		{
			"e2e-test-images/sample-apiserver",
			[]string{"busybox", "sample-apiserver"},
			ocispec.ImageConfig{Entrypoint: []string{"/sample-apiserver"}},
		},
		{"etcd", []string{"busybox", "etcd"}, ocispec.ImageConfig{}},
		{"pause", []string{"pause"}, ocispec.ImageConfig{Entrypoint: []string{"/pause"}, User: "65535:65535"}},
	}
}

// asked are the images of registryName that the suite of the minor asks for, with their tags, by name.
func asked() map[string][]string {
	all := map[string][]string{}
	for _, config := range imageutils.GetImageConfigs() {
		full := config.GetE2EImage()
		if name, ok := strings.CutPrefix(full[:strings.LastIndex(full, ":")], registryName+"/"); ok {
			all[name] = append(all[name], full)
		}
	}
	for name := range all {
		slices.Sort(all[name])
		all[name] = slices.Compact(all[name])
	}
	return all
}

// debianSuite is the release that upstream's images of glibc are made of, and debianPackages what all specs together
// call by name.
const debianSuite = "bookworm"

var debianPackages = []string{
	"base-files", "base-passwd", "bash", "bash-static", "bind9-dnsutils", "bind9-host", "busybox-static", "ca-certificates", "coreutils", "curl",
	"dash", "iperf", "iproute2", "iptables", "libc-bin", "netcat-openbsd", "nginx-light", "util-linux", "wget",
}

// packImages writes all images that a minor's suite asks for into one OCI archive, and returns its index.
func packImages(ctx context.Context, root, work, path string) ([]byte, error) {
	debian, err := debianRoot(ctx, filepath.Dir(work))
	if err != nil {
		return nil, err
	}
	sources, err := moduleDir(ctx, root, filepath.Base(work))
	if err != nil {
		return nil, err
	}
	layers, err := sourcesOf(ctx, debian, filepath.Join(work, "bin"), filepath.Join(root, "bin"), filepath.Join(sources, "test", "images"))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(work, "layout-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	a := &archive{dir: dir}
	packed, names := map[string]ocispec.Descriptor{}, asked()
	for _, i := range images() {
		if len(names[i.name]) == 0 {
			continue // another minor's
		}
		var stack []ocispec.Descriptor
		for _, name := range i.layers {
			if _, ok := packed[name]; !ok {
				if packed[name], err = a.layer(layers[name]); err != nil {
					return nil, fmt.Errorf("packing layer %s: %w", name, err)
				}
			}
			stack = append(stack, packed[name])
		}
		i.config.Env, i.config.WorkingDir = []string{searchPath}, "/"
		for _, name := range names[i.name] {
			if err := a.image(name, i.config, stack); err != nil {
				return nil, fmt.Errorf("packing %s: %w", name, err)
			}
		}
	}
	if err := a.write(path); err != nil {
		return nil, err
	}
	return a.index()
}

// debianRoot returns a directory with the files of the packages, unpacked and not configured. It is made once for each
// list of packages.
func debianRoot(ctx context.Context, work string) (string, error) {
	root, stamp := filepath.Join(work, "debian"), filepath.Join(work, "debian.packages")
	wanted := debianSuite + " " + strings.Join(debianPackages, " ") + "\n"
	if made, err := os.ReadFile(stamp); err == nil && string(made) == wanted {
		return root, nil
	}
	fmt.Fprintf(os.Stderr, "unpacking Debian packages into %s\n", root)
	_ = os.Remove(stamp)
	if err := os.RemoveAll(root); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "mmdebstrap", "--quiet", "--variant=extract", "--include="+strings.Join(debianPackages, ","), debianSuite, root)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpacking Debian packages by mmdebstrap: %w: %s", err, lastLine(out))
	}
	return root, os.WriteFile(stamp, []byte(wanted), 0o600)
}

// moduleDir is where Go keeps upstream's sources, whose test images hold files beside their programs.
func moduleDir(ctx context.Context, root, minor string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "-C", filepath.Join(root, "test", "conformance"), "list", "-modfile="+minor+"/go.mod", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking Go where k8s.io/kubernetes is: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// sourcesOf says what each layer is made of: Debian's files, programs built for this, those that Muster runs,
// upstream's test/images.
func sourcesOf(ctx context.Context, debian, built, bin, upstream string) (map[string]func(*tar.Writer) error, error) {
	program := filepath.Join(debian, "bin", "busybox")
	out, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("asking busybox what it can do: %w", err)
	}
	applets := strings.Fields(string(out))
	in := func(dir ...string) string { return filepath.Join(append([]string{upstream}, dir...)...) }
	return map[string]func(*tar.Writer) error{
		"debian":  tree(debian),
		"names":   files(append(debianNames(debian, applets), users...)...),
		"busybox": files(append(busybox(program, filepath.Join(debian, "bin", "bash-static"), filepath.Join(built, "sh"), applets), users...)...),
		"agnhost": files(
			file{name: "agnhost", from: filepath.Join(built, "agnhost")},
			file{name: "agnhost-2", to: "agnhost"}, // a spec looks which of the two was called
			file{name: "coredns", from: filepath.Join(built, "coredns")},
			file{name: "localhost.crt", from: in("agnhost", "porter", "localhost.crt"), mode: 0o644},
			file{name: "localhost.key", from: in("agnhost", "porter", "localhost.key"), mode: 0o644},
			file{name: "uploads/"},
		),
		"etcd": files(file{name: "usr/local/"}, file{name: "usr/local/bin/"}, file{name: "usr/local/bin/etcd", from: filepath.Join(bin, "etcd")}),
		"kitten": files(
			file{name: "data.json", from: in("kitten", "html", "data.json"), mode: 0o644},
			file{name: "kitten.jpg", from: in("kitten", "html", "kitten.jpg"), mode: 0o644},
			// The spec of image volumes tells the image by the name of the system that upstream's is made of.
			file{name: "etc/os-release", text: "NAME=\"Alpine Linux\"\nID=alpine\n"},
		),
		"nautilus": files(
			file{name: "data.json", from: in("nautilus", "html", "data.json"), mode: 0o644},
			file{name: "nautilus.jpg", from: in("nautilus", "html", "nautilus.jpg"), mode: 0o644},
		),
		"nginx": files(nginxFiles...),
		"httpd": files(httpdFiles...),
		"nonewprivs": files(file{name: "usr/local/"}, file{name: "usr/local/bin/"},
			file{name: "usr/local/bin/nnp", from: filepath.Join(built, "nonewprivs"), mode: 0o6755}),
		"pause":            files(file{name: "pause", from: filepath.Join(built, "pause")}),
		"regression":       files(file{name: "regression-issue-74839", from: filepath.Join(built, "regression-issue-74839")}),
		"sample-apiserver": files(file{name: "sample-apiserver", from: filepath.Join(built, "sample-apiserver")}),
	}, nil
}

// users are those of agnhost's Dockerfile, beside those that every system has: a spec looks for user and group that the
// image defines.
var users = []file{
	{name: "etc/passwd", text: "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/:/bin/false\nbin:x:2:2:bin:/:/bin/false\n" +
		"nobody:x:65534:65534:nobody:/:/bin/false\nuser-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n"},
	{name: "etc/group", text: "root:x:0:\ndaemon:x:1:\nbin:x:2:\nnogroup:x:65534:\n" +
		"user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"},
}

// debianNames are what configuring the packages would have linked, and busybox under every name that no package has.
func debianNames(root string, applets []string) []file {
	list := []file{
		{name: "bin/nc", to: "nc.openbsd"},
		{name: "usr/local/"},
		{name: "usr/local/bin/"},
		{name: "usr/local/bin/iperf", to: "/usr/bin/iperf"}, // where agnhost's Dockerfile has it
		{name: "usr/sbin/iptables", to: "iptables-nft"},
		{name: "usr/sbin/iptables-restore", to: "iptables-nft-restore"},
		{name: "usr/sbin/iptables-save", to: "iptables-nft-save"},
		{name: "usr/sbin/ip6tables", to: "ip6tables-nft"},
		{name: "usr/sbin/ip6tables-restore", to: "ip6tables-nft-restore"},
		{name: "usr/sbin/ip6tables-save", to: "ip6tables-nft-save"},
	}
	for _, applet := range applets {
		if applet != "nc" && !has(root, applet) {
			list = append(list, file{name: "bin/" + applet, to: "busybox"})
		}
	}
	return list
}

func has(root, program string) bool {
	for _, dir := range []string{"bin", "sbin", "usr/bin", "usr/sbin"} {
		if _, err := os.Lstat(filepath.Join(root, dir, program)); err == nil {
			return true
		}
	}
	return false
}

// busybox is a system of one program and a shell, which is sometimes another (package sh says when).
func busybox(program, bash, shell string, applets []string) []file {
	list := []file{
		{name: "bin/"},
		{name: "etc/"},
		{name: "home/"},
		{name: "root/", mode: 0o700},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/"},
		{name: "var/"},
		{name: "bin/busybox", from: program},
		{name: "bin/bash", from: bash},
		{name: "bin/sh", from: shell},
	}
	for _, applet := range applets {
		if applet != "busybox" && applet != "sh" && applet != "bash" {
			list = append(list, file{name: "bin/" + applet, to: "busybox"})
		}
	}
	return list
}

// nginxFiles make of Debian's nginx what docker.io's is: it serves /usr/share/nginx/html at port 80 and writes its logs
// to the container's.
var nginxFiles = []file{
	{name: "etc/nginx/nginx.conf", text: `user root;
worker_processes 1;
error_log /dev/stderr notice;
pid /run/nginx.pid;
events {}
http {
    include /etc/nginx/mime.types;
    access_log /dev/stdout;
    include /etc/nginx/conf.d/*.conf;
}
`},
	{name: "etc/nginx/conf.d/"},
	{name: "etc/nginx/conf.d/default.conf", text: `server {
    listen 80;
    location / {
        root /usr/share/nginx/html;
        index index.html;
    }
}
`},
	{name: "usr/share/nginx/html/index.html", text: "<!DOCTYPE html>\n<title>Welcome to nginx!</title>\n<h1>Welcome to nginx!</h1>\n"},
	{name: "var/cache/"},
	{name: "var/lib/nginx/"},
	{name: "var/log/"},
	{name: "var/log/nginx/"},
}

// httpdFiles have nginx serve what Apache's image does: specs move this file away to have the server fail.
var httpdFiles = []file{
	{name: "etc/nginx/conf.d/default.conf", text: `server {
    listen 80;
    location / {
        root /usr/local/apache2/htdocs;
        index index.html;
    }
}
`},
	{name: "usr/local/apache2/"},
	{name: "usr/local/apache2/htdocs/"},
	{name: "usr/local/apache2/htdocs/index.html", text: "<html><body><h1>It works!</h1></body></html>\n"},
}

// lastLine is the end of what a program said: mostly why it failed.
func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
