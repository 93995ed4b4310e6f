// Command pull pulls images as podman and CRI-O do, and says of each whether it came.
//
// Usage: pull REGISTRIES.CONF POLICY.JSON REGISTRIES.D DIRECTORY <images
//
// Reads one reference a line, writes one JSON object a line, in the same order. A policy that cannot be
// read is a problem of every image.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"go.podman.io/image/v5/copy"
	"go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
)

type answer struct {
	Image   string `json:"image"`
	Problem string `json:"problem,omitempty"`
}

func main() {
	nowhere := filepath.Join(os.Args[4], "nowhere")
	system := &types.SystemContext{
		SystemRegistriesConfPath:    os.Args[1],
		SystemRegistriesConfDirPath: nowhere,
		SignaturePolicyPath:         os.Args[2],
		RegistriesDirPath:           os.Args[3],
		BlobInfoCacheDir:            os.Args[4],
		DockerInsecureSkipTLSVerify: types.OptionalBoolTrue,
		AuthFilePath:                nowhere,
		DockerPerHostCertDirPath:    nowhere,
		OSChoice:                    "linux",
		ArchitectureChoice:          "amd64",
	}
	lines := bufio.NewScanner(os.Stdin)
	for number := 0; lines.Scan(); number++ {
		found := answer{Image: lines.Text()}
		target := filepath.Join(os.Args[4], fmt.Sprint(number))
		if err := pull(system, found.Image, target); err != nil {
			found.Problem = err.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
			panic(err)
		}
	}
}

func pull(system *types.SystemContext, image, target string) error {
	policy, err := signature.DefaultPolicy(system)
	if err != nil {
		return err
	}
	policies, err := signature.NewPolicyContext(policy)
	if err != nil {
		return err
	}
	defer policies.Destroy()
	from, err := docker.ParseReference("//" + image)
	if err != nil {
		return err
	}
	to, err := directory.NewReference(target)
	if err != nil {
		return err
	}
	_, err = copy.Image(context.Background(), policies, to, from, &copy.Options{SourceCtx: system})
	return err
}
