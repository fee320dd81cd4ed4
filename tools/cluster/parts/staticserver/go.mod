module kf.test/staticserver

go 1.26.0
