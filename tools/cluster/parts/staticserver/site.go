package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The smallest and the largest file that is compressed (below, gzip wins nothing), and what all compressed copies may take in memory.
const (
	gzipMinBytes   = 1 << 10
	gzipMaxBytes   = 8 << 20
	gzipTotalBytes = 16 << 20
)

// site answers requests from a folder whose content does not change while the program runs.
type site struct {
	folder    *os.Root
	pushState bool

	mu      sync.Mutex
	etags   map[string]string
	gzipped map[string][]byte
	held    int
}

func newSite(folder *os.Root, pushState bool) *site {
	return &site{folder: folder, pushState: pushState, etags: map[string]string{}, gzipped: map[string][]byte{}}
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
		return
	}
	name, redirect := s.resolve(r.URL.Path)
	switch {
	case redirect:
		target := path.Base(r.URL.Path) + "/"
		if r.URL.RawQuery != "" {
			target += "?" + r.URL.RawQuery
		}
		// Relative, so that it holds behind a gateway that strips a path prefix.
		w.Header().Set("Location", target)
		w.WriteHeader(http.StatusMovedPermanently)
	case name != "":
		s.serveFile(w, r, name)
	case s.pushState && s.isFile("index.html"):
		s.serveFile(w, r, "index.html")
	default:
		s.notFound(w, r)
	}
}

// resolve finds the file for a URL path; redirect tells that it is a folder asked for without its slash.
func (s *site) resolve(urlPath string) (name string, redirect bool) {
	clean := strings.TrimPrefix(path.Clean("/"+urlPath), "/")
	if hidden(clean) {
		return "", false
	}
	if clean == "" {
		clean = "."
	}
	info, err := s.folder.Stat(filepath.FromSlash(clean))
	if err != nil {
		return "", false
	}
	if !info.IsDir() {
		// "page.html/" names no file.
		if strings.HasSuffix(urlPath, "/") {
			return "", false
		}
		return clean, false
	}
	index := path.Join(clean, "index.html")
	if !s.isFile(index) {
		return "", false
	}
	return index, !strings.HasSuffix(urlPath, "/")
}

// hidden keeps dotfiles (but /.well-known) and the files that tell the platform how to run the app from being served.
func hidden(clean string) bool {
	switch clean {
	case "Staticfile", "Procfile", "manifest.yml":
		return true
	}
	for _, part := range strings.Split(clean, "/") {
		if strings.HasPrefix(part, ".") && part != ".well-known" {
			return true
		}
	}
	return false
}

func (s *site) isFile(name string) bool {
	info, err := s.folder.Stat(filepath.FromSlash(name))
	return err == nil && info.Mode().IsRegular()
}

func (s *site) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	file, err := s.folder.Open(filepath.FromSlash(name))
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			http.Error(w, "403 forbidden", http.StatusForbidden)
			return
		}
		s.notFound(w, r)
		return
	}
	defer file.Close()
	etag, err := s.etag(name, file)
	if err != nil {
		http.Error(w, "500 the file could not be read", http.StatusInternalServerError)
		return
	}
	contentType := typeOf(name)
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if compressible(contentType) {
		w.Header().Set("Vary", "Accept-Encoding")
		if body := s.compressed(r, name, file); body != nil {
			w.Header().Set("ETag", `W/"`+etag+`"`)
			w.Header().Set("Content-Encoding", "gzip")
			http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
			return
		}
	}
	w.Header().Set("ETag", `"`+etag+`"`)
	// No Last-Modified: images carry one fixed time for all files, which would never tell a change.
	http.ServeContent(w, r, name, time.Time{}, file)
}

// etag is taken from the content, once per file.
func (s *site) etag(name string, file io.ReadSeeker) (string, error) {
	s.mu.Lock()
	known, ok := s.etags[name]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	tag := hex.EncodeToString(hash.Sum(nil))[:32]
	s.mu.Lock()
	s.etags[name] = tag
	s.mu.Unlock()
	return tag, nil
}

// compressed returns the gzip form when the client takes it, asks for no range and the file is worth it; else nil.
func (s *site) compressed(r *http.Request, name string, file *os.File) []byte {
	if r.Header.Get("Range") != "" || !acceptsGzip(r.Header.Get("Accept-Encoding")) {
		return nil
	}
	info, err := file.Stat()
	if err != nil || info.Size() < gzipMinBytes || info.Size() > gzipMaxBytes {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if body, ok := s.gzipped[name]; ok {
		return body
	}
	var body bytes.Buffer
	writer := gzip.NewWriter(&body)
	_, err = io.Copy(writer, file)
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		_, _ = file.Seek(0, io.SeekStart)
		return nil
	}
	if s.held+body.Len() <= gzipTotalBytes {
		s.gzipped[name] = body.Bytes()
		s.held += body.Len()
	}
	return body.Bytes()
}

// acceptsGzip reads Accept-Encoding (RFC 9110, 12.5.3): a quality of 0 refuses.
func acceptsGzip(header string) bool {
	accepted := false
	for _, part := range strings.Split(header, ",") {
		coding, parameters, _ := strings.Cut(part, ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding != "gzip" && coding != "*" {
			continue
		}
		quality := 1.0
		if value, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q="); ok {
			parsed, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err == nil {
				quality = parsed
			}
		}
		if coding == "gzip" {
			return quality > 0
		}
		accepted = quality > 0
	}
	return accepted
}

func compressible(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	if strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") {
		return true
	}
	switch media {
	case "application/json", "application/javascript", "application/xml", "application/wasm", "application/manifest+json":
		return true
	}
	return false
}

// Types that matter and that Go's small built-in table lacks; the run image holds no mime.types file.
var moreTypes = map[string]string{
	".ico":         "image/x-icon",
	".map":         "application/json",
	".md":          "text/markdown; charset=utf-8",
	".mp4":         "video/mp4",
	".otf":         "font/otf",
	".ttf":         "font/ttf",
	".txt":         "text/plain; charset=utf-8",
	".webmanifest": "application/manifest+json",
	".woff":        "font/woff",
	".woff2":       "font/woff2",
	".zip":         "application/zip",
}

func typeOf(name string) string {
	extension := strings.ToLower(path.Ext(name))
	if known, ok := moreTypes[extension]; ok {
		return known
	}
	if known := mime.TypeByExtension(extension); known != "" {
		return known
	}
	return "application/octet-stream"
}

func (s *site) notFound(w http.ResponseWriter, r *http.Request) {
	body, err := s.folder.ReadFile("404.html")
	contentType := "text/html; charset=utf-8"
	if err != nil {
		body, contentType = []byte("404 page not found\n"), "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusNotFound)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
